// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Gives a verified set whose single keys can be changed a larger filter and a larger exact set.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <sieve/key.h>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// The filters, by their maps' ids.
struct Growth {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
};

// Builds a filter with room for twice as many keys, and for the entries that are coming
// (filters/prefixes/prefix_entries.hpp), from the set's exact keys, tests it in the kernel and
// swaps it in. The ends of keys stay. The building goes on without the lock; if somebody changes the set
// meanwhile, it is built again, with the lock. Errors: fixed_keys; changed_meanwhile if the set has no longer
// these fields or is not verified, as nobody knows its keys then, or if somebody changes it who does not take
// the lock; those of prepare() and of swap().
[[nodiscard]] Result<Growth> grow_set(Kernel& kernel, const HookName& hook, const std::string& set,
                                      std::uint32_t fields, const Observer& observer,
                                      std::span<const sieve_key> coming = {});

} // namespace sieve::control
