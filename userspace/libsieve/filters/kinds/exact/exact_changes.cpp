// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_changes.hpp"

#include <utility>

namespace sieve::exact {

bool Ipv4Changes::contains(std::uint32_t address) const {
    const sieve_exact_place at = locate(address);
    return sieve_exact_test(&exact_, words_[at.first], words_[at.second], at.rest) != 0;
}

void Ipv4Changes::erase(std::uint32_t address) {
    const sieve_exact_place at = locate(address);
    const auto clear = [this](std::uint32_t word, std::uint64_t content) {
        if (const std::uint64_t found = lanes_.equal(words_[word], content); found != 0)
            make({word, lanes_.lowest(found), lanes_.none()});
    };
    clear(at.first, lanes_.in_first(at.rest));
    clear(at.second, lanes_.in_second(at.rest));
}

void Ipv4Changes::hold(const Store& store) {
    Planned& planned = planned_.try_emplace(store.word, Planned{words_[store.word], 0}).first->second;
    planned.word = lanes_.with(planned.word, store.lane, store.content);
    planned.held |= 1U << store.lane;
}

// A key that is in at once. It may move in the same round.
void Ipv4Changes::put(const Store& store) {
    make(store);
    if (const auto found = planned_.find(store.word); found != planned_.end())
        found->second.word = lanes_.with(found->second.word, store.lane, store.content);
}

Begun Ipv4Changes::insert(std::uint32_t address) {
    const sieve_exact_place at = locate(address);
    const std::uint64_t in_first = lanes_.in_first(at.rest);
    const std::uint64_t in_second = lanes_.in_second(at.rest);
    // What will be free is free already: moves fill free lanes first.
    const std::uint64_t free_first = lanes_.free(planned(at.first));
    const std::uint64_t free_second = lanes_.free(planned(at.second));
    if ((free_first | free_second) != 0) {
        if (lanes_.how_many(free_first) >= lanes_.how_many(free_second))
            put({at.first, lanes_.lowest(free_first), in_first});
        else
            put({at.second, lanes_.lowest(free_second), in_second});
        return Begun::in;
    }
    const auto word_at = [this](std::uint32_t word) { return planned(word); };
    const auto may_move = [this](std::uint32_t word, std::uint32_t lane) { return !is_held(word, lane); };
    if (!search_.find(lanes_, word_at, may_move, at, {0, exact_.words})) return Begun::nowhere;
    std::vector<Store> stores;
    for (const Move& move : search_.moves())
        stores.push_back({move.to_word, move.to_lane,
                          lanes_.other_content(lanes_.get(planned(move.from_word), move.from_lane))});
    stores.push_back({search_.word(), search_.lane(), search_.word() == at.first ? in_first : in_second});
    for (const Store& store : stores) hold(store);
    scripts_.add(std::move(stores), [this](const Store& store) { make(store); });
    return Begun::moving;
}

void Ipv4Changes::remove_copies() {
    for (std::uint32_t word = 0; word < words_.size(); word++)
        for (std::uint32_t lane = 0; lane < lanes_.count(); lane++) {
            const std::uint64_t content = lanes_.get(words_[word], lane);
            if (content == lanes_.none() || !lanes_.is_content(content) || !lanes_.is_second(content))
                continue;
            if (lanes_.equal(words_[lanes_.other_word(word, content)], lanes_.other_content(content)) != 0)
                make({word, lane, lanes_.none()});
        }
}

bool Ipv6Changes::contains(uint128 address) const {
    if (part_.lines == 0) return false;
    const sieve_exact_lines at = lines_of(part_, address);
    const auto upper = static_cast<std::uint64_t>(address >> 64);
    const auto lower = static_cast<std::uint64_t>(address);
    return (sieve_exact_test_ipv6(&lines_[at.first], upper, lower) |
            sieve_exact_test_ipv6(&lines_[at.second], upper, lower)) != 0;
}

// The order of the two stores. A place whose upper word is zero matches addresses of ::/64 only, so that is
// what it holds in between. `unsettled` names the place meanwhile.
void Ipv6Changes::make(const Put& put) {
    __u64& upper = lines_[put.line].word[put.place];
    __u64& lower = lines_[put.line].word[put.place + SIEVE_EXACT_IPV6_WAYS];
    publish(part_.unsettled, SIEVE_EXACT_WRITING + std::uint64_t{put.line} * SIEVE_EXACT_IPV6_WAYS +
                                 static_cast<std::uint64_t>(put.place));
    if (put.address == no_address) {
        publish(upper, static_cast<std::uint64_t>(put.address >> 64));
        publish(lower, static_cast<std::uint64_t>(put.address));
    } else {
        publish(lower, static_cast<std::uint64_t>(put.address));
        publish(upper, static_cast<std::uint64_t>(put.address >> 64));
    }
    publish(part_.unsettled, SIEVE_EXACT_CHANGING);
}

void Ipv6Changes::erase(uint128 address) {
    if (part_.lines == 0) return;
    const sieve_exact_lines at = lines_of(part_, address);
    for (const std::uint32_t line : {at.first, at.second})
        for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++)
            if (address_at(lines_[line], place) == address) make({line, place, no_address});
}

int Ipv6Changes::free_places(std::uint32_t line) const {
    int free = 0;
    for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++)
        free += planned(line, place) == no_address ? 1 : 0;
    return free;
}

int Ipv6Changes::first_free(std::uint32_t line) const {
    int place = 0;
    while (place < SIEVE_EXACT_IPV6_WAYS && planned(line, place) != no_address) place++;
    return place;
}

void Ipv6Changes::hold(const Put& put) {
    const auto [found, is_new] = planned_.try_emplace(put.line);
    Planned& planned = found->second;
    if (is_new)
        for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++)
            planned.address[place] = address_at(lines_[put.line], place);
    planned.address[put.place] = put.address;
    planned.held |= 1U << put.place;
}

bool Ipv6Changes::visited(std::int32_t step, std::uint32_t line) const {
    for (; step >= 0; step = steps_[static_cast<std::size_t>(step)].before)
        if (steps_[static_cast<std::size_t>(step)].line == line) return true;
    return false;
}

// From the last step back to the first: each address is copied to the place that is free, then its old place
// is freed, for the one before it.
void Ipv6Changes::begin_moves(uint128 address, int free) {
    std::vector<Put> puts;
    Step to = steps_.back();
    while (to.before >= 0) {
        const Step from = steps_[static_cast<std::size_t>(to.before)];
        puts.push_back({to.line, free, planned(from.line, to.place)});
        puts.push_back({from.line, to.place, no_address});
        free = to.place;
        to = from;
    }
    puts.push_back({to.line, free, address});
    for (const Put& put : puts) hold(put);
    scripts_.add(std::move(puts), [this](const Put& put) { make(put); });
}

Begun Ipv6Changes::insert(uint128 address) {
    constexpr std::size_t most_steps = 1U << 14;
    if (part_.lines == 0) return Begun::nowhere;
    const sieve_exact_lines at = lines_of(part_, address);
    const int first = free_places(at.first);
    const int second = free_places(at.second);
    if (first + second > 0) {
        const std::uint32_t line = first >= second ? at.first : at.second;
        const Put put{line, first_free(line), address};
        make(put);
        if (planned_.contains(line)) hold(put);
        return Begun::in;
    }
    steps_.assign({{at.first, -1, 0}, {at.second, -1, 0}});
    for (std::size_t step = 0; step < steps_.size() && steps_.size() < most_steps; step++) {
        const std::uint32_t from = steps_[step].line;
        for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++) {
            if (is_held(from, place)) continue;
            const sieve_exact_lines of_other = lines_of(part_, planned(from, place));
            const std::uint32_t to = of_other.first == from ? of_other.second : of_other.first;
            if (visited(static_cast<std::int32_t>(step), to)) continue;
            steps_.push_back({to, static_cast<std::int32_t>(step), place});
            if (free_places(to) == 0) continue;
            begin_moves(address, first_free(to));
            return Begun::moving;
        }
    }
    return Begun::nowhere;
}

void Ipv6Changes::remove_copies() {
    if (part_.unsettled >= SIEVE_EXACT_WRITING) {
        const std::uint64_t number = part_.unsettled - SIEVE_EXACT_WRITING;
        const std::uint64_t line = number / SIEVE_EXACT_IPV6_WAYS;
        const int place = static_cast<int>(number % SIEVE_EXACT_IPV6_WAYS);
        // Half an address has an upper word of zero.
        if (line < lines_.size() && lines_[line].word[place] == 0)
            make({static_cast<std::uint32_t>(line), place, no_address});
    }
    for (std::uint32_t line = 0; line < lines_.size(); line++)
        for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++) {
            const uint128 address = address_at(lines_[line], place);
            if (address == no_address) continue;
            const sieve_exact_lines at = lines_of(part_, address);
            const auto is_there = [&](std::uint32_t other, int from) {
                for (int i = from; i < SIEVE_EXACT_IPV6_WAYS; i++)
                    if (address_at(lines_[other], i) == address) return true;
                return false;
            };
            if (is_there(line, place + 1) || (line != at.first && is_there(at.first, 0)))
                make({line, place, no_address});
        }
}

std::uint64_t Ipv6Changes::count() const {
    std::uint64_t count = 0;
    for (std::uint32_t line = 0; line < lines_.size(); line++)
        count += static_cast<std::uint64_t>(SIEVE_EXACT_IPV6_WAYS - free_places(line));
    return count;
}

} // namespace sieve::exact
