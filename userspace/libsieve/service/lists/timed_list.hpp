// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exact list behind a filter: every timed entry, found by its prefix, and by the time at which it ends.
//
// Memory for each timed entry: 8 to 9 bytes of IPv4, 20 to 23 of IPv6, and 5 to 11 of a hash table that is
// between three eighths and three quarters full. One that ends takes 32 to 50 more, one with a large number
// 16 to 18.
#pragma once

#include <array>
#include <compare>
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
    // The number of timed entries of that prefix, in one part of the list or in all of them.
    [[nodiscard]] std::uint64_t count(const Prefix& prefix, std::optional<Part> part = {}) const;
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
    // Of one entry: where it is stored, with a bit that tells its family.
    using Place = std::uint32_t;
    static constexpr Place none = ~Place{0};
    static constexpr Place ipv6_place = Place{1} << 31;
    // What is known of an entry beside its address, in four bytes. Of one that never ends and has a small
    // number: number, origin and length. Of any other: a bit, and an index into details_.
    using Known = std::uint32_t;
    static constexpr Known unused = ~Known{0}; // no entry is here
    static constexpr Known in_details = Known{1} << 31;

    template <std::size_t words>
    struct Stored {
        std::array<std::uint32_t, words> address; // the last word first
        Known known = unused;

        [[nodiscard]] std::uint32_t& next_unused() { return address[0]; }
    };
    static_assert(sizeof(Stored<1>) == 8 && sizeof(Stored<4>) == 20);
    struct Detail {
        std::uint64_t id = 0;
        std::int64_t until : 56 = 0; // in milliseconds since 1970; never_stored: it does not end
        std::uint64_t length : 8 = 0;

        [[nodiscard]] std::uint64_t& next_unused() { return id; }
    };
    static_assert(sizeof(Detail) == 16);

    // Keeps the index of each value until the value is taken out. Another one gets the index then.
    template <class Value>
    class Pool {
      public:
        [[nodiscard]] std::uint32_t put(const Value& value);
        void take_out(std::uint32_t index);
        [[nodiscard]] std::size_t size() const { return values_.size(); } // with unused ones
        [[nodiscard]] const Value& operator[](std::uint32_t index) const { return values_[index]; }
        [[nodiscard]] Value& operator[](std::uint32_t index) { return values_[index]; }

      private:
        std::vector<Value> values_;
        std::uint32_t unused_ = none; // the first of them
    };

    struct Ending {
        std::int64_t until = 0;
        Place place = none;
        [[nodiscard]] friend auto operator<=>(const Ending&, const Ending&) = default;
    };

    [[nodiscard]] std::size_t& count_of(const Prefix& prefix, std::uint64_t id) {
        return by_origin_[is_ipv4(prefix.address) ? 1 : 0][origin_of(id)];
    }
    [[nodiscard]] std::size_t home(const Prefix& prefix) const;
    [[nodiscard]] std::size_t next(std::size_t index) const { return (index + 1) & (slots_.size() - 1); }
    // The slot of that timed entry; slots_.size() if there is none.
    [[nodiscard]] std::size_t slot_of(const Prefix& prefix, std::uint64_t id) const;
    void free_slot(std::size_t slot);
    void put(Place place);
    void grow();

    [[nodiscard]] Place store(const TimedEntry& timed_entry);
    void take_out(Place place);
    [[nodiscard]] Known know(const TimedEntry& timed_entry);
    void forget(Known known);
    [[nodiscard]] Known known_at(Place place) const;
    [[nodiscard]] Known& known_at(Place place);
    [[nodiscard]] Detail detail(Known known) const;
    [[nodiscard]] uint128 address_at(Place place) const;
    [[nodiscard]] Prefix prefix_at(Place place) const;
    [[nodiscard]] TimedEntry timed_entry_at(Place place) const;
    [[nodiscard]] bool has(Place place, const Prefix& prefix) const;
    template <class Visit>
    void for_each_place(const Visit& visit) const;

    void note_ending(Place place);
    [[nodiscard]] bool is_current(const Ending& ending) const;

    Pool<Stored<1>> ipv4_;
    Pool<Stored<4>> ipv6_;
    Pool<Detail> details_;
    std::vector<Place> slots_;
    std::size_t timed_entries_ = 0;
    std::size_t prefixes_ = 0;
    std::array<std::array<std::size_t, 256>, 2> by_origin_{}; // of IPv6, of IPv4
    // The earliest on top. One that no longer fits its timed entry is skipped.
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings_;
};

} // namespace sieve::service::live
