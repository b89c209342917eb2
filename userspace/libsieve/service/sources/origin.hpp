// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where the bytes of a list come from.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "libsieve/service/config/values/source_spec.hpp"
#include "libsieve/service/sandbox/confine.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

struct FileOrigin {
    std::string path; // of a regular file
};

struct HttpOrigin {
    std::string url;
    HttpAccess access{};
    std::optional<FetchLimits> limits{}; // nothing: those of the refresh
    bool image = false;                  // it may be a filter image; else only text
};

struct CommandOrigin {
    std::vector<std::string>
        arguments; // the program, found in PATH, and what it is told; no shell is involved
    std::optional<SandboxUser> user{};   // nothing: that of the refresh
    std::optional<FetchLimits> limits{}; // likewise
    bool image = false;                  // it may print a filter image; else only text
};

// A descriptor that is open for reading already: a regular file, or a pipe, which is read to its end and
// holds plain text.
struct OpenOrigin {
    int descriptor = -1; // borrowed
    std::string name;
};

// A server or a command that is another set's by now. It is not asked here: what it said last is on the list
// until that set has read it (ReadRequest::kept).
struct MovedOrigin {
    std::string identity;
};

using Origin = std::variant<FileOrigin, HttpOrigin, CommandOrigin, OpenOrigin, MovedOrigin>;

// What these sources stand for now: each list of a folder, each file that a pattern matches. A stream stands
// for none. Errors: bad_input for a folder that cannot be read, and for a user that there is not.
[[nodiscard]] Result<std::vector<Origin>> origins_of(const std::vector<SourceSpec>& sources);

// For messages: the path, the URL without credentials, "command NAME".
[[nodiscard]] std::string origin_name(const Origin& origin);

// Tells one origin from another in provenance. Shows no credentials, but changes with them.
[[nodiscard]] std::string origin_identity(const Origin& origin);

// What sources stand for, by identity.
struct SourceIdentities {
    std::set<std::string> known{};           // streams, too
    std::set<std::string> other_names{};     // of files that are known by a name before
    std::vector<SourceSpec> unlisted{};      // folders and patterns that cannot be looked at
    std::vector<SourceSpec> without_files{}; // those of which no file is there

    [[nodiscard]] bool empty() const { return known.empty() && unlisted.empty() && without_files.empty(); }
    // Whether they have this one, as far as can be known: a file may be one of those that cannot be seen.
    [[nodiscard]] bool may_have(const std::string& identity) const;
    // Whether it is there no more, or by another name.
    [[nodiscard]] bool needs_no_answer(const std::string& identity) const;
    // Whether they are just these, likewise. Where no file can be seen, there is one of them at least.
    [[nodiscard]] bool may_be(const std::set<std::string>& identities) const;

    [[nodiscard]] friend bool operator==(const SourceIdentities&, const SourceIdentities&) = default;
};

// The identities of what these sources stand for now. A file that a source names is not looked at, so it may
// be there by two names.
[[nodiscard]] SourceIdentities source_identities(const std::vector<SourceSpec>& sources);

// The identity of the file of exceptions at that path; empty where there is none.
[[nodiscard]] std::string exceptions_identity(const std::string& path);

// Whether what comes from there may be a filter image. Files of this host may be.
[[nodiscard]] bool may_be_image(const Origin& origin);

// bad_input or invalid_request if it can never work: a URL that is none, a command without a program.
[[nodiscard]] Status check_origin(const Origin& origin);

} // namespace sieve::service
