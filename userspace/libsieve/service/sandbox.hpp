// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From origins to a checked image, without letting a hostile byte near the process that asks.
//
//     origin      who reads it                               who reads the list
//     file        nobody: its descriptor is passed on
//     \                                                       . http(s)     a fetch child writes the body |
//     a build child unpacks, parses, builds, and writes command     a command child prints it             /
//     the image; this process checks every field of it
//
// Every child is this program executed anew (child.hpp) with the rights of confine.hpp. A list that is
// hostile can crash, hang or starve its child, and the refresh fails with one sentence that says so.
//
// A program that calls refresh_in_sandbox() calls run_as_child() (child_main.hpp) first in its main().
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <sieve/key.h>
#include <tl/expected.hpp>

#include "libsieve/control/set_spec.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/service/gather.hpp"
#include "libsieve/service/origin.hpp"
#include "libsieve/service/source_provenance.hpp"

namespace sieve::service {

// What the set in force was built of, as a refresh returned it. It counts for the same feed options only.
struct KnownList {
    std::vector<SourceProvenance> sources;
    std::string digest; // list_digest.hpp; empty if the origin was an image
};

struct RefreshRequest {
    std::string set; // its name, for messages
    std::vector<Origin> origins;
    control::FeedSpec feed;
    bool exact = false;               // the keys that verification needs, too
    bool list = false;                // the parsed list, too
    std::optional<KnownList> known{}; // nothing: build in any case
    SandboxSettings sandbox{};
};

// Nothing is to be done: all origins say what they said, or the same list in other words.
struct UnchangedList {
    KnownList known; // with the times and validators of this refresh
};

struct BuiltList {
    Image image; // checked, and of the fields that were asked for
    // Distinct and rising, as many as the image holds; empty unless asked for.
    std::vector<sieve_key> exact;
    std::optional<Feed> list; // if asked for, and unless the origin was an image
    KnownList known;
    std::vector<std::string> remarks; // what a person should know, such as why lines were skipped
    std::chrono::milliseconds gathering{0};
    std::chrono::milliseconds building{0};
};

using Refreshed = std::variant<UnchangedList, BuiltList>;

// Asks every origin, and builds the set if any has something new. The failure begins with the set's name.
// Blocks: for a thread of its own. Leaves nothing behind but lines in servers' logs.
[[nodiscard]] tl::expected<Refreshed, GatherFailure> refresh_in_sandbox(const RefreshRequest& request);

} // namespace sieve::service
