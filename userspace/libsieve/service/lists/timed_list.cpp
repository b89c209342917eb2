// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/timed_list.hpp"

#include <algorithm>
#include <utility>

namespace sieve::service::live {

namespace {

constexpr std::size_t first_slots = 64;

// Some million years.
constexpr std::int64_t never_stored = (std::int64_t{1} << 55) - 1;

std::uint64_t upper_of(const Prefix& prefix) {
    return static_cast<std::uint64_t>(prefix.address >> 64);
}
std::uint64_t lower_of(const Prefix& prefix) {
    return static_cast<std::uint64_t>(prefix.address);
}

std::int64_t stored_time(Time time) {
    return std::clamp<std::int64_t>(time.time_since_epoch().count(), -never_stored, never_stored);
}
Time time_of(std::int64_t stored) {
    return stored == never_stored ? never : Time(std::chrono::milliseconds(stored));
}

} // namespace

bool TimedList::Stored::has(const Prefix& prefix) const {
    return length == prefix.length && lower == lower_of(prefix) && upper == upper_of(prefix);
}

Prefix TimedList::Stored::prefix() const {
    return {address_number(upper, lower), static_cast<std::uint8_t>(length)};
}

TimedEntry TimedList::Stored::timed_entry() const {
    return {prefix(), id, time_of(until)};
}

TimedList::TimedList() : slots_(first_slots, none) {}

std::size_t TimedList::home(const Prefix& prefix) const {
    return PrefixHash()(prefix) & (slots_.size() - 1);
}

std::size_t TimedList::slot_of(const Prefix& prefix, std::uint64_t id) const {
    for (std::size_t at = home(prefix); slots_[at] != none; at = next(at))
        if (stored_[slots_[at]].id == id && stored_[slots_[at]].has(prefix)) return at;
    return slots_.size();
}

bool TimedList::contains(const Prefix& prefix) const {
    for (std::size_t at = home(prefix); slots_[at] != none; at = next(at))
        if (stored_[slots_[at]].has(prefix)) return true;
    return false;
}

std::uint64_t TimedList::count(const Prefix& prefix) const {
    std::uint64_t count = 0;
    for (std::size_t at = home(prefix); slots_[at] != none; at = next(at))
        if (stored_[slots_[at]].has(prefix)) count++;
    return count;
}

std::optional<TimedEntry> TimedList::find(const Prefix& prefix, std::uint64_t id) const {
    const std::size_t at = slot_of(prefix, id);
    return at < slots_.size() ? std::optional(stored_[slots_[at]].timed_entry()) : std::nullopt;
}

TimedList::Index TimedList::store(const Stored& stored) {
    const Index index = free_;
    if (index == none) {
        // An eighth more, where a vector takes twice as much.
        if (stored_.size() == stored_.capacity()) stored_.reserve(stored_.size() / 8 * 9 + first_slots);
        stored_.push_back(stored);
        return static_cast<Index>(stored_.size() - 1);
    }
    free_ = static_cast<Index>(stored_[index].upper);
    stored_[index] = stored;
    return index;
}

void TimedList::put(Index index) {
    std::size_t at = home(stored_[index].prefix());
    while (slots_[at] != none) at = next(at);
    slots_[at] = index;
}

void TimedList::grow() {
    slots_.assign(slots_.size() * 2, none);
    for (Index index = 0; index < stored_.size(); index++)
        if (stored_[index].length != 0) put(index);
}

void TimedList::note_ending(Time until, Index index) {
    if (until == never) return;
    // Entries that were prolonged or removed leave stale endings behind.
    if (endings_.size() > 2 * timed_entries_ + first_slots) {
        std::vector<Ending> current;
        for (Index one = 0; one < stored_.size(); one++)
            if (stored_[one].length != 0 && stored_[one].until != never_stored)
                current.push_back({time_of(stored_[one].until), one});
        endings_ = std::priority_queue<Ending>(std::less<Ending>(), std::move(current));
        return;
    }
    endings_.push({until, index});
}

bool TimedList::add(const TimedEntry& timed_entry) {
    const std::int64_t until = stored_time(timed_entry.until);
    bool came = true;
    for (std::size_t at = home(timed_entry.prefix); slots_[at] != none; at = next(at)) {
        Stored& stored = stored_[slots_[at]];
        if (!stored.has(timed_entry.prefix)) continue;
        came = false;
        if (stored.id != timed_entry.id) continue;
        stored.until = until;
        note_ending(timed_entry.until, slots_[at]);
        return false;
    }
    if ((timed_entries_ + 1) * 4 > slots_.size() * 3) grow();
    const Index index = store({.upper = upper_of(timed_entry.prefix),
                               .lower = lower_of(timed_entry.prefix),
                               .id = timed_entry.id,
                               .until = until,
                               .length = timed_entry.prefix.length});
    put(index);
    timed_entries_++;
    count_of(timed_entry.prefix, timed_entry.id)++;
    if (came) prefixes_++;
    note_ending(timed_entry.until, index);
    return came;
}

// Moves back those that were pushed on by this slot, so that no search ends too early.
void TimedList::free_slot(std::size_t slot) {
    std::size_t hole = slot;
    for (std::size_t at = next(slot); slots_[at] != none; at = next(at)) {
        const std::size_t wanted = home(stored_[slots_[at]].prefix());
        const std::size_t mask = slots_.size() - 1;
        // The slot may move if its home does not lie behind the hole.
        if (((at - wanted) & mask) < ((at - hole) & mask)) continue;
        slots_[hole] = slots_[at];
        hole = at;
    }
    slots_[hole] = none;
}

bool TimedList::remove(const Prefix& prefix, std::uint64_t id) {
    const std::size_t at = slot_of(prefix, id);
    if (at == slots_.size()) return false;
    const Index index = slots_[at];
    free_slot(at);
    stored_[index] = {.upper = free_};
    free_ = index;
    timed_entries_--;
    count_of(prefix, id)--;
    const bool gone = !contains(prefix);
    if (gone) prefixes_--;
    return gone;
}

bool TimedList::is_current(const Ending& ending) const {
    const Stored& stored = stored_[ending.index];
    return stored.length != 0 && stored.until == stored_time(ending.until);
}

std::optional<Time> TimedList::next_expiry() {
    while (!endings_.empty() && !is_current(endings_.top())) endings_.pop();
    return endings_.empty() ? std::nullopt : std::optional(endings_.top().until);
}

std::vector<TimedEntry> TimedList::expired(Time now) {
    std::vector<TimedEntry> all;
    while (!endings_.empty() && endings_.top().until <= now) {
        const Ending ending = endings_.top();
        endings_.pop();
        if (is_current(ending)) all.push_back(stored_[ending.index].timed_entry());
    }
    return all;
}

void TimedList::for_each(const std::function<void(const TimedEntry& timed_entry)>& visit) const {
    for (const Stored& stored : stored_)
        if (stored.length != 0) visit(stored.timed_entry());
}

void TimedList::for_each_prefix(const std::function<void(const Prefix& prefix)>& visit) const {
    for (Index index = 0; index < stored_.size(); index++) {
        if (stored_[index].length == 0) continue;
        const Prefix prefix = stored_[index].prefix();
        // Of several timed entries, the first that a search meets counts.
        std::size_t first = home(prefix);
        while (!stored_[slots_[first]].has(prefix)) first = next(first);
        if (slots_[first] == index) visit(prefix);
    }
}

} // namespace sieve::service::live
