// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Changes keys of a set in place, in one go: on every hook that has it, or in a filter that comes to one. The
// batch form of change_keys().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
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
    HookName hook{}; // one that has it
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

// What is to be applied to a filter; null: leave it alone.
using DifferenceFor = std::function<const KeyDifference*(const LiveFilter& filter)>;

// The filters of a set in force. The controllers' lock is held as long as this lives, so no table changes.
class LiveFilters {
  public:
    // Takes the lock and finds the filters. Errors: those of the lock and of reading hooks.
    [[nodiscard]] static Result<LiveFilters> hold(Kernel& kernel, std::string set, const Observer& observer);
    LiveFilters(LiveFilters&&) noexcept;
    LiveFilters& operator=(LiveFilters&&) noexcept;
    ~LiveFilters();

    // Asks `difference_for` about each filter, and applies what it returns. `rates`: also compute each
    // changed filter's expected rate, which walks the whole filter. Errors: before anything was changed;
    // `unfinished` if the filters before this one have the difference and the rest has not.
    [[nodiscard]] Result<std::vector<FilterChanged>> change(const DifferenceFor& difference_for, bool rates);

  private:
    struct Parts;
    explicit LiveFilters(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

// The same for one filter that no table in force has yet, by its map's id. The caller holds the lock.
[[nodiscard]] Result<FilterChanged> change_coming_filter(Kernel& kernel, const std::string& set,
                                                         std::uint32_t map_id,
                                                         const DifferenceFor& difference_for);

} // namespace sieve::control
