// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A set in force whose keys can be changed one by one: its filter, and what is known about its keys.
#pragma once

#include <memory>
#include <string>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/keys/key_notes.hpp"
#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct OpenSet {
    std::unique_ptr<RunningFilter> filter;
    StoredKeys stored; // what the filter stores for an entry
    std::unique_ptr<KeyNotes> notes;
};

// Opens the set. Error fixed_keys if the set's kind does not let keys change one by one.
[[nodiscard]] Result<OpenSet> open_changeable(Kernel& kernel, const std::string& interface,
                                              const kernel::SetInForce& set);

// Sees to it that so many more keys with an end have room beside the set's filter: puts the first map there,
// or a larger one with the keys of the map before. The caller holds the lock.
[[nodiscard]] Result<TableWithSet> with_room_for_ends(Kernel& kernel, const kernel::Hook& hook,
                                                      TableWithSet now, std::uint64_t more);

} // namespace sieve::control
