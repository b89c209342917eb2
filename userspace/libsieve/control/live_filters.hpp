// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Changes keys of a set in place on every hook that has it, in one go: the batch form of change_keys().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/in_force.hpp"
#include "libsieve/control/kernel.hpp"
#include "libsieve/control/observer.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

// Distinct keys. Those to be removed are in the filter, those to be added were not added before.
struct KeyDifference {
    explicit KeyDifference(std::uint32_t fields) : removed(fields), added(fields) {}
    KeySet removed; // goes first, which makes room
    KeySet added;
    std::vector<sieve_key> strangers{}; // keys that are no members, and must not be mistaken for members

    [[nodiscard]] bool empty() const { return removed.empty() && added.empty(); }
};

// A filter in force, before it is changed.
struct LiveFilter {
    HookName hook;
    std::uint32_t map_id = 0;
    std::uint32_t fields = 0;
    std::uint64_t identity[2] = {}; // of its image
    std::uint64_t changes = 0;      // since that was built
    std::uint64_t keys = 0;
    std::uint64_t lines = 0; // of the filter itself
    bool changeable = false; // its kind counts keys, it holds no prefixes, and it is not verified
};

struct FilterChanged {
    LiveFilter filter;         // as it is now
    bool touched = false;      // the caller had a difference for it
    std::uint64_t done = 0;    // keys that came or went
    std::uint64_t no_room = 0; // keys that did not fit: the filter misses them
    std::uint64_t absent = 0;  // keys to be removed that the filter did not have
    bool mistaken = false;     // a stranger matches now
    std::optional<double> expected_fpr{};
};

// Asks `difference_for` about each filter of that name in force, and applies what it returns; null: leave it
// alone. The lock is held from before the first question until after the last change. `rates`: also compute
// each changed filter's expected rate, which walks the whole filter. Errors: those of the lock and of reading
// hooks, before anything was changed; `unfinished` if the filters before this one have the difference and the
// rest has not.
[[nodiscard]] Result<std::vector<FilterChanged>>
change_live_filters(Kernel& kernel, const std::string& set,
                    const std::function<const KeyDifference*(const LiveFilter& filter)>& difference_for,
                    bool rates, const Observer& observer);

} // namespace sieve::control
