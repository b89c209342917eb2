// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Brings the tables of a set that lists its keys to what they are to hold, in place: on every hook that has
// the set, or gets it back when a change on probation is taken back, or in a table that comes to one. The
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
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// Distinct keys that come and go. Those that are there or gone already do not matter.
struct KeyDifference {
    explicit KeyDifference(std::uint32_t fields) : removed(fields), added(fields) {}
    KeySet removed; // goes first, which makes room
    KeySet added;

    [[nodiscard]] bool empty() const { return removed.empty() && added.empty(); }
};

// A whole list, without a copy of it.
struct WantedKeys {
    std::function<bool(const sieve_key& key)> contains;
    std::function<void(const std::function<void(const sieve_key& key)>& visit)> for_each; // each key once
};

// A filter in force, or one that may come back, before it is changed.
struct LiveFilter {
    HookName hook{};       // one that has it
    bool in_force = false; // else it comes back when the change on probation is taken back
    std::uint32_t map_id = 0;
    std::uint32_t fields = 0;
    std::uint64_t changes = 0; // since it was built
    bool changeable = false;   // its kind lists its keys, they change in place, and it is not verified
};

// What a filter is to get: a difference, or what makes it the list where nobody knows what it holds. Both
// null: nothing.
struct FilterDue {
    const KeyDifference* difference = nullptr;
    const WantedKeys* list = nullptr;
};
using DueFor = std::function<FilterDue(const LiveFilter& filter)>;

struct FilterChanged {
    LiveFilter filter;         // as it is now
    bool touched = false;      // something was due
    std::uint64_t done = 0;    // keys that came or went
    std::uint64_t no_room = 0; // keys that did not fit: the filter misses them
    bool little_room = false;  // as many keys as have come would not fit once more
};

// The filters of a set, in force and of tables that may come back. The controllers' lock is held as long as
// this lives, so no table changes.
class LiveFilters {
  public:
    // Takes the lock and finds the filters. Errors: those of the lock and of reading hooks.
    [[nodiscard]] static Result<LiveFilters> hold(Kernel& kernel, std::string set, const Observer& observer);
    LiveFilters(LiveFilters&&) noexcept;
    LiveFilters& operator=(LiveFilters&&) noexcept;
    ~LiveFilters();

    // Asks `due_for` about each filter, and changes it. Errors: before anything was changed; `unfinished` if
    // the filters before this one have the change and the rest has not.
    [[nodiscard]] Result<std::vector<FilterChanged>> change(const DueFor& due_for);

  private:
    struct Parts;
    explicit LiveFilters(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

// The same for one filter that no table in force has yet, by its map's id. The caller holds the lock.
[[nodiscard]] Result<FilterChanged> change_coming_filter(Kernel& kernel, const std::string& set,
                                                         std::uint32_t map_id, const DueFor& due_for);

} // namespace sieve::control
