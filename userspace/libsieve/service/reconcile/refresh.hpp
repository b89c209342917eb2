// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From a set's sources to an image that may go live: what the sources hold is compared with the last good
// list, guarded, built, and staged in the state directory. Children do the work with lists (sandbox.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <tl/expected.hpp>

#include "libsieve/control/spec/observer.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/safety/guards.hpp"
#include "libsieve/service/sources/sandbox.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// What a set's sources hold now, beside what it was last time.
struct Examined {
    std::optional<SetRecord> before{}; // the last good image, with the times and validators of this visit
    std::string build{};               // digest of build_text() now
    std::optional<ReadList> read{};    // nothing: neither list nor options have changed
    std::optional<Refusal> refusal{};  // by a guard; the list must not go live
    bool outdated = false; // the list changed in place since the last good image was built, and no more does
    bool accepted = false; // a person accepted the new list, which a guard had refused
    // A server or a command failed, and what it said last is on the list.
    std::optional<GatherFailure> behind{};
    bool waits_to_give_up = false;       // `behind` says only that a moved source is still on the list
    bool provenance_changed = false;     // of a list that has not changed: a file has another time
    bool of_other_sources = false;       // the last good list is, since the configuration was changed
    std::vector<std::string> left_out{}; // of the new list (SetRecord)
    std::chrono::milliseconds asking{};  // how long the sources and their lists took

    [[nodiscard]] bool changed() const { return read.has_value(); }
    // Of the new list; of an image its keys.
    [[nodiscard]] std::uint64_t entries() const;
};

// Origins of a set's last good list that the configuration has moved to another set, which has not got
// them in force yet: the names of these sets, by identity.
using MovedOrigins = std::map<std::string, std::string>;

// Asks the set's sources, reads its list if anything has changed, and asks the guards. Changes nothing.
// A server or a command that has never answered is done without where no member is lost by it: not where the
// set is in force and its record is lost. `in_force` says whether it may be; null: it may. What the list has
// of `moved` origins stays on it, so that no member is missed meanwhile. `files_only`:
// ReadRequest::files_only.
// Errors: what sources and lists say; a server may say when to ask again.
[[nodiscard]] tl::expected<Examined, GatherFailure>
examine(const SetConfiguration& set, const StateDirectory& state, const Protection& protection,
        const SandboxSettings& sandbox, const control::Observer& observer,
        const std::function<bool()>& in_force = {}, const MovedOrigins& moved = {}, bool files_only = false);

// Builds the image of a list that was examined, has changed and was not refused, and stages it. The record is
// to be committed when the image is live.
[[nodiscard]] Result<SetRecord> build_image(const SetConfiguration& set, const Examined& examined,
                                            const StateDirectory& state, const Protection& protection,
                                            const SandboxSettings& sandbox,
                                            const control::Observer& observer);

// The last good list of a set. bad_input if there is none that can be read, or if it is one of other fields.
[[nodiscard]] Result<Feed> last_good_list(const SetConfiguration& set, const SetRecord& record,
                                          const StateDirectory& state);

} // namespace sieve::service
