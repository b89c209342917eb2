// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A set in force whose single keys can be changed: its filter, and what is known about its keys.
#pragma once

#include <memory>
#include <string>

#include "libsieve/control/in_force.hpp"
#include "libsieve/control/kernel.hpp"
#include "libsieve/control/key_notes.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

struct OpenSet {
    std::unique_ptr<RunningFilter> filter;
    std::unique_ptr<KeyNotes> notes;
};

// Opens the set. Error fixed_keys if the set's kind does not let single keys change, or the set holds
// prefixes.
[[nodiscard]] Result<OpenSet> open_changeable(Kernel& kernel, const std::string& interface,
                                              const kernel::SetInForce& set);

} // namespace sieve::control
