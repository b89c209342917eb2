// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/claim_list.hpp"

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

bool ClaimList::Slot::has(const Prefix& prefix) const {
    return length == prefix.length && lower == lower_of(prefix) && upper == upper_of(prefix);
}

Claim ClaimList::Slot::claim() const {
    return {{address_number(upper, lower), length}, id, Time(std::chrono::milliseconds(until))};
}

ClaimList::ClaimList() : slots_(first_slots) {}

std::size_t ClaimList::home(const Prefix& prefix) const {
    return PrefixHash()(prefix) & (slots_.size() - 1);
}

std::optional<std::size_t> ClaimList::index_of(const Prefix& prefix, std::uint64_t id) const {
    for (std::size_t at = home(prefix); slots_[at].length != 0; at = next(at))
        if (slots_[at].id == id && slots_[at].has(prefix)) return at;
    return std::nullopt;
}

bool ClaimList::contains(const Prefix& prefix) const {
    for (std::size_t at = home(prefix); slots_[at].length != 0; at = next(at))
        if (slots_[at].has(prefix)) return true;
    return false;
}

std::uint64_t ClaimList::count(const Prefix& prefix) const {
    std::uint64_t count = 0;
    for (std::size_t at = home(prefix); slots_[at].length != 0; at = next(at))
        if (slots_[at].has(prefix)) count++;
    return count;
}

std::optional<Claim> ClaimList::find(const Prefix& prefix, std::uint64_t id) const {
    const std::optional<std::size_t> at = index_of(prefix, id);
    return at ? std::optional(slots_[*at].claim()) : std::nullopt;
}

void ClaimList::put(const Slot& slot) {
    std::size_t at = home(slot.claim().prefix);
    while (slots_[at].length != 0) at = next(at);
    slots_[at] = slot;
}

void ClaimList::grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
        if (slot.length != 0) put(slot);
}

void ClaimList::note_ending(const Claim& claim) {
    if (claim.until == never) return;
    // Claims that were prolonged or removed leave stale endings behind.
    if (endings_.size() > 2 * claims_ + first_slots) {
        std::vector<Ending> current;
        for_each([&](const Claim& one) {
            if (one.until != never) current.push_back({one.until, one.prefix, one.id});
        });
        endings_ = std::priority_queue<Ending>(std::less<Ending>(), std::move(current));
        return;
    }
    endings_.push({claim.until, claim.prefix, claim.id});
}

bool ClaimList::add(const Claim& claim) {
    const std::int64_t until = claim.until.time_since_epoch().count();
    bool came = true;
    for (std::size_t at = home(claim.prefix); slots_[at].length != 0; at = next(at)) {
        if (!slots_[at].has(claim.prefix)) continue;
        came = false;
        if (slots_[at].id != claim.id) continue;
        slots_[at].until = until;
        note_ending(claim);
        return false;
    }
    if ((claims_ + 1) * 4 > slots_.size() * 3) grow();
    put({upper_of(claim.prefix), lower_of(claim.prefix), claim.id, until, claim.prefix.length});
    claims_++;
    if (came) prefixes_++;
    note_ending(claim);
    return came;
}

// Moves back those that were pushed on by this slot, so that no search ends too early.
void ClaimList::free_slot(std::size_t index) {
    std::size_t hole = index;
    for (std::size_t at = next(index); slots_[at].length != 0; at = next(at)) {
        const std::size_t wanted = home(slots_[at].claim().prefix);
        const std::size_t mask = slots_.size() - 1;
        // The slot may move if its home does not lie behind the hole.
        if (((at - wanted) & mask) < ((at - hole) & mask)) continue;
        slots_[hole] = slots_[at];
        hole = at;
    }
    slots_[hole] = Slot{};
}

bool ClaimList::remove(const Prefix& prefix, std::uint64_t id) {
    const std::optional<std::size_t> at = index_of(prefix, id);
    if (!at) return false;
    free_slot(*at);
    claims_--;
    const bool gone = !contains(prefix);
    if (gone) prefixes_--;
    return gone;
}

bool ClaimList::is_current(const Ending& ending) const {
    const std::optional<std::size_t> at = index_of(ending.prefix, ending.id);
    return at && slots_[*at].until == ending.until.time_since_epoch().count();
}

std::optional<Time> ClaimList::next_expiry() {
    while (!endings_.empty() && !is_current(endings_.top())) endings_.pop();
    return endings_.empty() ? std::nullopt : std::optional(endings_.top().until);
}

std::vector<Claim> ClaimList::expired(Time now) {
    std::vector<Claim> all;
    while (!endings_.empty() && endings_.top().until <= now) {
        const Ending ending = endings_.top();
        endings_.pop();
        if (is_current(ending)) all.push_back({ending.prefix, ending.id, ending.until});
    }
    return all;
}

void ClaimList::for_each(const std::function<void(const Claim& claim)>& visit) const {
    for (const Slot& slot : slots_)
        if (slot.length != 0) visit(slot.claim());
}

void ClaimList::for_each_prefix(const std::function<void(const Prefix& prefix)>& visit) const {
    for (std::size_t at = 0; at < slots_.size(); at++) {
        if (slots_[at].length == 0) continue;
        const Claim claim = slots_[at].claim();
        // Of several claims, the first that a search meets counts.
        std::size_t first = home(claim.prefix);
        while (!slots_[first].has(claim.prefix)) first = next(first);
        if (first == at) visit(claim.prefix);
    }
}

} // namespace sieve::service::live
