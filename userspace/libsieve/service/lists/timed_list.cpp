// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/timed_list.hpp"

namespace sieve::service::live {

namespace {

constexpr std::size_t first_slots = 64;

std::uint64_t upper_of(const Prefix& prefix) {
    return static_cast<std::uint64_t>(prefix.address >> 64);
}
std::uint64_t lower_of(const Prefix& prefix) {
    return static_cast<std::uint64_t>(prefix.address);
}

} // namespace

bool TimedList::Slot::has(const Prefix& prefix) const {
    return length == prefix.length && lower == lower_of(prefix) && upper == upper_of(prefix);
}

TimedEntry TimedList::Slot::timed_entry() const {
    return {{address_number(upper, lower), length}, id, Time(std::chrono::milliseconds(until))};
}

TimedList::TimedList() : slots_(first_slots) {}

std::size_t TimedList::home(const Prefix& prefix) const {
    return PrefixHash()(prefix) & (slots_.size() - 1);
}

std::optional<std::size_t> TimedList::index_of(const Prefix& prefix, std::uint64_t id) const {
    for (std::size_t at = home(prefix); slots_[at].length != 0; at = next(at))
        if (slots_[at].id == id && slots_[at].has(prefix)) return at;
    return std::nullopt;
}

bool TimedList::contains(const Prefix& prefix) const {
    for (std::size_t at = home(prefix); slots_[at].length != 0; at = next(at))
        if (slots_[at].has(prefix)) return true;
    return false;
}

std::uint64_t TimedList::count(const Prefix& prefix) const {
    std::uint64_t count = 0;
    for (std::size_t at = home(prefix); slots_[at].length != 0; at = next(at))
        if (slots_[at].has(prefix)) count++;
    return count;
}

std::optional<TimedEntry> TimedList::find(const Prefix& prefix, std::uint64_t id) const {
    const std::optional<std::size_t> at = index_of(prefix, id);
    return at ? std::optional(slots_[*at].timed_entry()) : std::nullopt;
}

void TimedList::put(const Slot& slot) {
    std::size_t at = home(slot.timed_entry().prefix);
    while (slots_[at].length != 0) at = next(at);
    slots_[at] = slot;
}

void TimedList::grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
        if (slot.length != 0) put(slot);
}

void TimedList::note_ending(const TimedEntry& timed_entry) {
    if (timed_entry.until == never) return;
    // Entries that were prolonged or removed leave stale endings behind.
    if (endings_.size() > 2 * timed_entries_ + first_slots) {
        std::vector<Ending> current;
        for_each([&](const TimedEntry& one) {
            if (one.until != never) current.push_back({one.until, one.prefix, one.id});
        });
        endings_ = std::priority_queue<Ending>(std::less<Ending>(), std::move(current));
        return;
    }
    endings_.push({timed_entry.until, timed_entry.prefix, timed_entry.id});
}

bool TimedList::add(const TimedEntry& timed_entry) {
    const std::int64_t until = timed_entry.until.time_since_epoch().count();
    bool came = true;
    for (std::size_t at = home(timed_entry.prefix); slots_[at].length != 0; at = next(at)) {
        if (!slots_[at].has(timed_entry.prefix)) continue;
        came = false;
        if (slots_[at].id != timed_entry.id) continue;
        slots_[at].until = until;
        note_ending(timed_entry);
        return false;
    }
    if ((timed_entries_ + 1) * 4 > slots_.size() * 3) grow();
    put({upper_of(timed_entry.prefix), lower_of(timed_entry.prefix), timed_entry.id, until,
         timed_entry.prefix.length});
    timed_entries_++;
    count_of(timed_entry.prefix, timed_entry.id)++;
    if (came) prefixes_++;
    note_ending(timed_entry);
    return came;
}

// Moves back those that were pushed on by this slot, so that no search ends too early.
void TimedList::free_slot(std::size_t index) {
    std::size_t hole = index;
    for (std::size_t at = next(index); slots_[at].length != 0; at = next(at)) {
        const std::size_t wanted = home(slots_[at].timed_entry().prefix);
        const std::size_t mask = slots_.size() - 1;
        // The slot may move if its home does not lie behind the hole.
        if (((at - wanted) & mask) < ((at - hole) & mask)) continue;
        slots_[hole] = slots_[at];
        hole = at;
    }
    slots_[hole] = Slot{};
}

bool TimedList::remove(const Prefix& prefix, std::uint64_t id) {
    const std::optional<std::size_t> at = index_of(prefix, id);
    if (!at) return false;
    free_slot(*at);
    timed_entries_--;
    count_of(prefix, id)--;
    const bool gone = !contains(prefix);
    if (gone) prefixes_--;
    return gone;
}

bool TimedList::is_current(const Ending& ending) const {
    const std::optional<std::size_t> at = index_of(ending.prefix, ending.id);
    return at && slots_[*at].until == ending.until.time_since_epoch().count();
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
        if (is_current(ending)) all.push_back({ending.prefix, ending.id, ending.until});
    }
    return all;
}

void TimedList::for_each(const std::function<void(const TimedEntry& timed_entry)>& visit) const {
    for (const Slot& slot : slots_)
        if (slot.length != 0) visit(slot.timed_entry());
}

void TimedList::for_each_prefix(const std::function<void(const Prefix& prefix)>& visit) const {
    for (std::size_t at = 0; at < slots_.size(); at++) {
        if (slots_[at].length == 0) continue;
        const TimedEntry timed_entry = slots_[at].timed_entry();
        // Of several timed entries, the first that a search meets counts.
        std::size_t first = home(timed_entry.prefix);
        while (!slots_[first].has(timed_entry.prefix)) first = next(first);
        if (first == at) visit(timed_entry.prefix);
    }
}

} // namespace sieve::service::live
