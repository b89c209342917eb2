// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exact list behind a filter: every timed entry, found by its prefix, and by the time at which it ends.
//
// Memory: 32 to 36 bytes for each timed entry, four bytes for each slot of a hash table that is between three
// eighths and three quarters full, and 16 bytes for each timed entry that ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "libsieve/service/lists/timed_entry.hpp"

namespace sieve::service::live {

class TimedList {
  public:
    TimedList();

    // Adds a timed entry, or moves the end of one that is there. True if the prefix was not on the list
    // before.
    bool add(const TimedEntry& timed_entry);
    // Removes the timed entry of that prefix and number. True if the prefix is no longer on the list. A timed
    // entry that is not there is none to remove.
    bool remove(const Prefix& prefix, std::uint64_t id);

    [[nodiscard]] bool contains(const Prefix& prefix) const;
    [[nodiscard]] std::optional<TimedEntry> find(const Prefix& prefix, std::uint64_t id) const;
    // The number of timed entries of that prefix.
    [[nodiscard]] std::uint64_t count(const Prefix& prefix) const;
    [[nodiscard]] std::size_t timed_entries() const { return timed_entries_; } // of all prefixes
    [[nodiscard]] std::size_t prefixes() const { return prefixes_; }           // distinct ones
    // The timed entries of one family whose origin has this code (origin_of()).
    [[nodiscard]] std::size_t timed_entries(bool ipv4, std::uint8_t origin) const {
        return by_origin_[ipv4 ? 1 : 0][origin];
    }

    // When the next timed entry ends; nothing if none ever does.
    [[nodiscard]] std::optional<Time> next_expiry();
    // The timed entries that have ended by then. They stay on the list until they are removed.
    [[nodiscard]] std::vector<TimedEntry> expired(Time now);

    // Every timed entry, in no particular order.
    void for_each(const std::function<void(const TimedEntry& timed_entry)>& visit) const;
    // Every prefix once, in no particular order.
    void for_each_prefix(const std::function<void(const Prefix& prefix)>& visit) const;

  private:
    struct Stored {
        std::uint64_t upper = 0; // of the address; of a free one, the index of the next free one
        std::uint64_t lower = 0;
        std::uint64_t id = 0;
        std::int64_t until : 56 = 0;  // in milliseconds since 1970; never_stored: it does not end
        std::uint64_t length : 8 = 0; // 0: free

        [[nodiscard]] bool has(const Prefix& prefix) const;
        [[nodiscard]] Prefix prefix() const;
        [[nodiscard]] TimedEntry timed_entry() const;
    };
    static_assert(sizeof(Stored) == 32);
    // Of a timed entry in stored_.
    using Index = std::uint32_t;
    static constexpr Index none = ~Index{0};
    struct Ending {
        Time until;
        Index index = none;
        friend bool operator<(const Ending& a, const Ending& b) {
            return a.until > b.until;
        } // earliest on top
    };

    [[nodiscard]] std::size_t& count_of(const Prefix& prefix, std::uint64_t id) {
        return by_origin_[is_ipv4(prefix.address) ? 1 : 0][origin_of(id)];
    }
    [[nodiscard]] std::size_t home(const Prefix& prefix) const;
    [[nodiscard]] std::size_t next(std::size_t index) const { return (index + 1) & (slots_.size() - 1); }
    // The slot of that timed entry; slots_.size() if there is none.
    [[nodiscard]] std::size_t slot_of(const Prefix& prefix, std::uint64_t id) const;
    void free_slot(std::size_t slot);
    [[nodiscard]] Index store(const Stored& stored);
    void put(Index index);
    void grow();
    void note_ending(Time until, Index index);
    [[nodiscard]] bool is_current(const Ending& ending) const;

    std::vector<Stored> stored_;
    Index free_ = none; // the first of stored_ that is free
    std::vector<Index> slots_;
    std::size_t timed_entries_ = 0;
    std::size_t prefixes_ = 0;
    std::array<std::array<std::size_t, 256>, 2> by_origin_{}; // of IPv6, of IPv4
    std::priority_queue<Ending> endings_; // one that no longer fits its timed entry is skipped
};

} // namespace sieve::service::live
