// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The sources of a set's list as the configuration names them, with every default filled in.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libsieve/service/download/http_access.hpp"

namespace sieve::service {

// Behind this link, below the state directory, are the files of sets that change together: one rename leads
// all of them to their next lists.
inline constexpr std::string_view link_of_sets_together = "fleet/current";

// One file.
struct FileSpec {
    std::string path{}; // absolute

    [[nodiscard]] friend bool operator==(const FileSpec&, const FileSpec&) = default;
};

// Every list in a folder.
struct FolderSpec {
    std::string path{}; // absolute, with / at its end

    [[nodiscard]] friend bool operator==(const FolderSpec&, const FolderSpec&) = default;
};

// Every file that matches.
struct GlobSpec {
    std::string pattern{}; // absolute

    [[nodiscard]] friend bool operator==(const GlobSpec&, const GlobSpec&) = default;
};

// How long one refresh of a source may last, and how much it may bring.
struct FetchLimits {
    std::chrono::seconds timeout = std::chrono::minutes(5);
    std::uint64_t most_bytes = std::uint64_t{256} << 20; // as they come, so packed if the list is packed

    [[nodiscard]] friend bool operator==(const FetchLimits&, const FetchLimits&) = default;
};

// A list on an HTTP server.
struct HttpSpec {
    std::string url{};
    HttpAccess access{};
    FetchLimits limits{};
    bool image = false; // it may hand over an image; else only text

    [[nodiscard]] friend bool operator==(const HttpSpec&, const HttpSpec&) = default;
};

// The standard output of a command.
struct CommandSpec {
    std::vector<std::string> arguments{}; // the program first; no shell is involved
    std::string user{};                   // empty: the user of downloads and builds
    FetchLimits limits{};
    bool image = false; // it may hand over an image; else only text

    [[nodiscard]] friend bool operator==(const CommandSpec&, const CommandSpec&) = default;
};

// The decisions of a CrowdSec local API, followed as a stream.
struct CrowdsecSpec {
    std::string url{};
    HttpAccess access{};
    std::string key_file{};                         // holds the bouncer's key; empty: none
    std::vector<std::string> types{"ban"};          // of decisions
    std::vector<std::string> scopes{"Ip", "Range"}; // of decisions
    std::vector<std::string> origins{};             // of decisions; none: all
    // Decisions of scenarios whose names contain one of these, and none of those; none: all.
    std::vector<std::string> scenarios_containing{};
    std::vector<std::string> scenarios_not_containing{};
    std::chrono::seconds poll{std::chrono::seconds{10}}; // between two questions
    bool usage_metrics = true;                           // tells the API what became of its decisions

    [[nodiscard]] friend bool operator==(const CrowdsecSpec&, const CrowdsecSpec&) = default;
};

// The bans that `xdp-sieve ban` gives: the set's own ledger in the state directory.
struct BanSpec {
    [[nodiscard]] friend bool operator==(const BanSpec&, const BanSpec&) = default;
};
inline constexpr char ban_source[] = "bans"; // as the configuration names it

using SourceSpec = std::variant<FileSpec, FolderSpec, GlobSpec, HttpSpec, CommandSpec, CrowdsecSpec, BanSpec>;

// For messages: the path, the pattern, the URL without credentials, "command NAME", "CrowdSec URL",
// "bans".
[[nodiscard]] std::string source_name(const SourceSpec& source);

// Whether the source says what comes and what goes; any other has a whole list.
[[nodiscard]] bool is_stream(const SourceSpec& source);

// Whether the source may hand over a filter that was built elsewhere. Files of this host may.
[[nodiscard]] bool may_be_image(const SourceSpec& source);

} // namespace sieve::service
