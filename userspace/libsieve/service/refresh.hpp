// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From a set's sources to an image that may go live: what the sources hold is compared with the last good
// list, guarded, built, and staged in the state directory.
#pragma once

#include <optional>
#include <string>

#include "libsieve/control/observer.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/service/configuration.hpp"
#include "libsieve/service/guards.hpp"
#include "libsieve/service/source.hpp"
#include "libsieve/service/state_directory.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::service {

// What a set's sources hold now, beside what it was last time.
struct Examined {
    std::optional<SetRecord> before; // the last good image
    std::string build;               // digest of build_text() now
    Pieces pieces;
    std::optional<Feed> list;       // nothing: neither list nor options have changed
    std::optional<Refusal> refusal; // by a guard; the list must not go live

    [[nodiscard]] bool changed() const { return list.has_value(); }
};

// Asks the set's sources, reads its list if anything has changed, and asks the guards. Changes nothing.
// Errors: what sources and feeds say.
[[nodiscard]] Result<Examined> examine(const SetConfiguration& set, const StateDirectory& state,
                                       const Protection& protection, const control::Observer& observer);

// Builds the image of a list that was examined, has changed and was not refused, and stages it. The record is
// to be committed when the image is live. Errors besides those of building: changed_meanwhile if a source
// changed while it was read.
[[nodiscard]] Result<SetRecord> build_image(const SetConfiguration& set, Examined examined,
                                            const StateDirectory& state, const Protection& protection,
                                            const control::Observer& observer);

// The last good list of a set, as it was built.
[[nodiscard]] Result<Feed> last_good_list(const SetConfiguration& set, const SetRecord& record,
                                          const StateDirectory& state);

} // namespace sieve::service
