// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whose a last good list is, after the configuration has changed: a set may have other sources now, and
// another set may have the sources that it had.
#pragma once

#include <set>
#include <string>

#include "libsieve/control/spec/observer.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/state/state_directory.hpp"

namespace sieve::service {

// Whether the list came from a source that the set no longer has. False where its sources, then or now, are
// unknown; a file of a folder that cannot be looked at may be there. With other exceptions it is a list of
// the same sources.
[[nodiscard]] bool is_of_other_sources(const SetRecord& record, const SetConfiguration& set);

// Gives each set that has no list of its own sources the one of the set that had these sources before and has
// them no more: it has another name now. Several sets may share what was one. Returns the sets that got a
// list, whose records are marked as renamed: what is in force under their names is not theirs.
std::set<std::string> take_over_renamed(const Configuration& configuration, const StateDirectory& state,
                                        const control::Observer& observer);

// Sets whose bans take_over_renamed() could not move from the name that they had before, such as while
// another process holds the ledgers' lock. As long as nobody follows them, the former sets stay.
[[nodiscard]] std::set<std::string> sets_that_await_bans(const Configuration& configuration,
                                                         const StateDirectory& state);

} // namespace sieve::service
