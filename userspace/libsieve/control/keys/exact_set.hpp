// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Sets in force that list their keys (kind `exact`): what is in force is read back from the kernel, so there
// is no doubt about what is a member, and nothing has to be noted beside the table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/access/open_table.hpp"
#include "libsieve/control/keys/change_keys.hpp"
#include "libsieve/control/keys/list_keys.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// change_keys() for such a set. A set that has no room for the keys, or that gets very many of them, is
// listed and built anew with them, with room for more, tested, and swapped in; what others change meanwhile
// goes to both tables. The same happens if its table cannot state when the keys end. Whoever replaces the
// table meanwhile, as another process does whose keys make the set grow, makes this function start over with
// the set as it is then. The second table is built under the lock, so that nobody overtakes it. Errors of
// change_keys(), and changed_meanwhile if the set has become one of another kind.
[[nodiscard]] Result<KeysChanged> change_exact_set(Kernel& kernel, const HookName& hook,
                                                   const std::string& set, const Members& members,
                                                   const KeyRequest& request, const Observer& observer,
                                                   const Safety& safety);

// Keys of a set that packets let end by themselves.
struct EndingKeys {
    std::uint64_t ending = 0; // that are to end
    std::uint64_t ended = 0;  // that are no members any more, but still take room
};

// Both numbers; 0 for a set whose keys do not end. While the table changes, they are about right.
[[nodiscard]] EndingKeys count_ending(RunningFilter& filter);

// Makes room: takes the entries out that have ended. Returns how many. The caller holds the lock.
[[nodiscard]] Result<std::uint64_t> sweep_exact_set(Filters& kernel, const kernel::SetInForce& set);

// The members of the set, as they are at one moment, in no particular order. Takes the lock only if the table
// keeps changing, or if its last writer died.
[[nodiscard]] Result<std::vector<ListedKey>> list_exact_set(Kernel& kernel, const std::string& name,
                                                            std::uint32_t map_id);

} // namespace sieve::control
