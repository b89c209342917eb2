// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/timed_list.hpp"

#include <algorithm>
#include <utility>

namespace sieve::service::live {

namespace {

constexpr std::size_t first_slots = 64;

// Some million years.
constexpr std::int64_t never_stored = (std::int64_t{1} << 55) - 1;

// Of an entry that is not in details_: its prefix's length, above it its origin, and above that its number.
constexpr int origin_above = 8;
constexpr int number_above = 16;
constexpr std::uint64_t small_numbers = std::uint64_t{1} << (31 - number_above);

std::int64_t stored_time(Time time) {
    return std::clamp<std::int64_t>(time.time_since_epoch().count(), -never_stored, never_stored);
}
Time time_of(std::int64_t stored) {
    return stored == never_stored ? never : Time(std::chrono::milliseconds(stored));
}

std::uint32_t word_of(uint128 address, int word) {
    return static_cast<std::uint32_t>(address >> (32 * word));
}

} // namespace

template <class Value>
std::uint32_t TimedList::Pool<Value>::put(const Value& value) {
    const std::uint32_t index = unused_;
    if (index == none) {
        // An eighth more, where a vector takes twice as much.
        if (values_.size() == values_.capacity()) values_.reserve(values_.size() / 8 * 9 + first_slots);
        values_.push_back(value);
        return static_cast<std::uint32_t>(values_.size() - 1);
    }
    unused_ = static_cast<std::uint32_t>(values_[index].next_unused());
    values_[index] = value;
    return index;
}

template <class Value>
void TimedList::Pool<Value>::take_out(std::uint32_t index) {
    values_[index] = {};
    values_[index].next_unused() = unused_;
    unused_ = index;
}

// --- what is stored of an entry

TimedList::Known TimedList::know(const TimedEntry& timed_entry) {
    const std::int64_t until = stored_time(timed_entry.until);
    const std::uint8_t length = timed_entry.prefix.length;
    if (until == never_stored && number_of(timed_entry.id) < small_numbers)
        return static_cast<Known>(number_of(timed_entry.id)) << number_above |
               Known{origin_of(timed_entry.id)} << origin_above | length;
    return in_details | details_.put({.id = timed_entry.id, .until = until, .length = length});
}

void TimedList::forget(Known known) {
    if ((known & in_details) != 0) details_.take_out(known & ~in_details);
}

TimedList::Detail TimedList::detail(Known known) const {
    if ((known & in_details) != 0) return details_[known & ~in_details];
    return {.id = entry_id(known >> number_above, static_cast<std::uint8_t>(known >> origin_above)),
            .until = never_stored,
            .length = static_cast<std::uint8_t>(known)};
}

TimedList::Place TimedList::store(const TimedEntry& timed_entry) {
    const uint128 address = timed_entry.prefix.address;
    const Known known = know(timed_entry);
    if (is_ipv4(address)) return ipv4_.put({.address = {word_of(address, 0)}, .known = known});
    return ipv6_place | ipv6_.put({.address = {word_of(address, 0), word_of(address, 1), word_of(address, 2),
                                               word_of(address, 3)},
                                   .known = known});
}

void TimedList::take_out(Place place) {
    forget(known_at(place));
    if ((place & ipv6_place) != 0)
        ipv6_.take_out(place & ~ipv6_place);
    else
        ipv4_.take_out(place);
}

TimedList::Known TimedList::known_at(Place place) const {
    return (place & ipv6_place) != 0 ? ipv6_[place & ~ipv6_place].known : ipv4_[place].known;
}
TimedList::Known& TimedList::known_at(Place place) {
    return (place & ipv6_place) != 0 ? ipv6_[place & ~ipv6_place].known : ipv4_[place].known;
}

uint128 TimedList::address_at(Place place) const {
    if ((place & ipv6_place) == 0) return all_ipv4.first | ipv4_[place].address[0];
    const auto& words = ipv6_[place & ~ipv6_place].address;
    return address_number(std::uint64_t{words[3]} << 32 | words[2], std::uint64_t{words[1]} << 32 | words[0]);
}

Prefix TimedList::prefix_at(Place place) const {
    return {address_at(place), static_cast<std::uint8_t>(detail(known_at(place)).length)};
}

TimedEntry TimedList::timed_entry_at(Place place) const {
    const Detail known = detail(known_at(place));
    return {{address_at(place), static_cast<std::uint8_t>(known.length)}, known.id, time_of(known.until)};
}

// Most others differ in the address already, and details_ is not asked.
bool TimedList::has(Place place, const Prefix& prefix) const {
    return address_at(place) == prefix.address && detail(known_at(place)).length == prefix.length;
}

template <class Visit>
void TimedList::for_each_place(const Visit& visit) const {
    for (Place place = 0; place < ipv4_.size(); place++)
        if (ipv4_[place].known != unused) visit(place);
    for (Place place = 0; place < ipv6_.size(); place++)
        if (ipv6_[place].known != unused) visit(ipv6_place | place);
}

// --- the hash table

TimedList::TimedList() : slots_(first_slots, none) {}

std::size_t TimedList::home(const Prefix& prefix) const {
    return PrefixHash()(prefix) & (slots_.size() - 1);
}

std::size_t TimedList::slot_of(const Prefix& prefix, std::uint64_t id) const {
    for (std::size_t at = home(prefix); slots_[at] != none; at = next(at))
        if (has(slots_[at], prefix) && detail(known_at(slots_[at])).id == id) return at;
    return slots_.size();
}

bool TimedList::contains(const Prefix& prefix) const {
    for (std::size_t at = home(prefix); slots_[at] != none; at = next(at))
        if (has(slots_[at], prefix)) return true;
    return false;
}

std::uint64_t TimedList::count(const Prefix& prefix, std::optional<Part> part) const {
    std::uint64_t count = 0;
    for (std::size_t at = home(prefix); slots_[at] != none; at = next(at))
        if (has(slots_[at], prefix) && (!part || part_of(detail(known_at(slots_[at])).id) == *part)) count++;
    return count;
}

std::optional<TimedEntry> TimedList::find(const Prefix& prefix, std::uint64_t id) const {
    const std::size_t at = slot_of(prefix, id);
    return at < slots_.size() ? std::optional(timed_entry_at(slots_[at])) : std::nullopt;
}

void TimedList::put(Place place) {
    std::size_t at = home(prefix_at(place));
    while (slots_[at] != none) at = next(at);
    slots_[at] = place;
}

void TimedList::grow() {
    slots_.assign(slots_.size() * 2, none);
    for_each_place([&](Place place) { put(place); });
}

// Moves back those that were pushed on by this slot, so that no search ends too early.
void TimedList::free_slot(std::size_t slot) {
    std::size_t hole = slot;
    for (std::size_t at = next(slot); slots_[at] != none; at = next(at)) {
        const std::size_t wanted = home(prefix_at(slots_[at]));
        const std::size_t mask = slots_.size() - 1;
        // The slot may move if its home does not lie behind the hole.
        if (((at - wanted) & mask) < ((at - hole) & mask)) continue;
        slots_[hole] = slots_[at];
        hole = at;
    }
    slots_[hole] = none;
}

// --- changes

bool TimedList::add(const TimedEntry& timed_entry) {
    bool came = true;
    for (std::size_t at = home(timed_entry.prefix); slots_[at] != none; at = next(at)) {
        const Place place = slots_[at];
        if (!has(place, timed_entry.prefix)) continue;
        came = false;
        if (detail(known_at(place)).id != timed_entry.id) continue;
        forget(known_at(place));
        known_at(place) = know(timed_entry);
        note_ending(place);
        return false;
    }
    if ((timed_entries_ + 1) * 4 > slots_.size() * 3) grow();
    const Place place = store(timed_entry);
    put(place);
    timed_entries_++;
    count_of(timed_entry.prefix, timed_entry.id)++;
    if (came) prefixes_++;
    note_ending(place);
    return came;
}

bool TimedList::remove(const Prefix& prefix, std::uint64_t id) {
    const std::size_t at = slot_of(prefix, id);
    if (at == slots_.size()) return false;
    const Place place = slots_[at];
    free_slot(at);
    take_out(place);
    timed_entries_--;
    count_of(prefix, id)--;
    const bool gone = !contains(prefix);
    if (gone) prefixes_--;
    return gone;
}

// --- ends

void TimedList::note_ending(Place place) {
    const std::int64_t until = detail(known_at(place)).until;
    if (until == never_stored) return;
    // Entries that were prolonged or removed leave stale endings behind.
    if (endings_.size() <= 2 * timed_entries_ + first_slots) return endings_.push({until, place});
    std::vector<Ending> current;
    for_each_place([&](Place one) {
        const std::int64_t end = detail(known_at(one)).until;
        if (end != never_stored) current.push_back({end, one});
    });
    endings_ = decltype(endings_)(std::greater<>(), std::move(current));
}

bool TimedList::is_current(const Ending& ending) const {
    const Known known = known_at(ending.place);
    return known != unused && detail(known).until == ending.until;
}

std::optional<Time> TimedList::next_expiry() {
    while (!endings_.empty() && !is_current(endings_.top())) endings_.pop();
    return endings_.empty() ? std::nullopt : std::optional(time_of(endings_.top().until));
}

std::vector<TimedEntry> TimedList::expired(Time now) {
    std::vector<TimedEntry> all;
    Ending last; // an entry that got the same end twice has ended once
    while (!endings_.empty() && endings_.top().until <= stored_time(now)) {
        const Ending ending = endings_.top();
        endings_.pop();
        if (ending != last && is_current(ending)) all.push_back(timed_entry_at(ending.place));
        last = ending;
    }
    return all;
}

void TimedList::for_each(const std::function<void(const TimedEntry& timed_entry)>& visit) const {
    for_each_place([&](Place place) { visit(timed_entry_at(place)); });
}

void TimedList::for_each_prefix(const std::function<void(const Prefix& prefix)>& visit) const {
    for_each_place([&](Place place) {
        const Prefix prefix = prefix_at(place);
        // Of several timed entries, the first that a search meets counts.
        std::size_t first = home(prefix);
        while (!has(slots_[first], prefix)) first = next(first);
        if (slots_[first] == place) visit(prefix);
    });
}

} // namespace sieve::service::live
