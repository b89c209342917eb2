// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The bytes of a list, brought here as a file that nobody has looked into.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <tl/expected.hpp>

#include "libsieve/service/download/sandbox_limits.hpp"
#include "libsieve/service/sandbox/child.hpp"
#include "libsieve/service/sandbox/confine.hpp"
#include "libsieve/service/sources/origin.hpp"
#include "libsieve/service/state/source_provenance.hpp"
#include "libsieve/util/result.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve::service {

// Who works for whoever asks for lists, and how much of it.
struct SandboxSettings {
    SandboxLimits limits{};
    SandboxUser user{};
    std::function<Result<ChildEnd>(const ChildOrder&)> run = run_child; // has a child follow an order
    ChildStarted started{}; // called before the child's work is waited for
    // Of downloading, reading and building, by several threads at once; empty: nobody wants to know.
    Progress progress{};
    int cancel = -1; // a descriptor that becomes readable when the work is to be given up; -1: none
};

// With the user that find_sandbox_user() finds, for a caller who may become another user; else as the caller.
[[nodiscard]] Result<SandboxSettings> standard_sandbox();

struct GatherFailure {
    Error error;                                       // "ORIGIN: what happened"
    std::optional<std::chrono::seconds> retry_after{}; // a server wants to be asked again then (backoff.hpp)
};

struct Gathered {
    // The content as it came, maybe compressed, maybe hostile. Nothing if a server said that it is what it
    // was.
    std::optional<UniqueFd> content;
    SourceProvenance provenance;
    bool unchanged = false; // the content is the known one
};

// bad_input naming the source if the file that the content came from has changed since it was gathered: it
// may have been read half old, half new.
[[nodiscard]] Status confirm_unchanged(const Gathered& gathered, const std::string& name);

// Opens a file; has a child download, or run a command. `known` is the provenance of the content that the
// caller has, of whichever origin; a server is then asked for something newer only. A child of a command is
// ended with all it started.
[[nodiscard]] tl::expected<Gathered, GatherFailure>
gather(const Origin& origin, const SourceProvenance* known, const SandboxSettings& settings);

} // namespace sieve::service
