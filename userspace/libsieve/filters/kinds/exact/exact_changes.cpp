// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_changes.hpp"

#include <utility>

namespace sieve::exact {

Ipv4Changes::Found Ipv4Changes::find(std::uint32_t address, std::uint32_t value) const {
    const sieve_exact_place at = locate(address);
    const std::uint64_t in_second = lanes_.in_second(at.rest, value);
    if (const std::uint64_t found = lanes_.equal(words_[at.second], in_second); found != 0)
        return {at.second, found, in_second};
    const std::uint64_t in_first = lanes_.in_first(at.rest, value);
    return {at.first, lanes_.equal(words_[at.first], in_first), in_first};
}

std::optional<std::uint32_t> Ipv4Changes::value_of(std::uint32_t address) const {
    const Found found = find(address, 0);
    if (found.lanes == 0) return std::nullopt;
    return lanes_.value_of(lanes_.get(words_[found.word], lanes_.lowest(found.lanes)));
}

void Ipv4Changes::set_value(std::uint32_t address, std::uint32_t value) {
    const Found found = find(address, value);
    if (found.lanes != 0) make({found.word, lanes_.lowest(found.lanes), found.content});
}

void Ipv4Changes::make(const Store& store) {
    __u64& at = words_[store.word];
    if (lanes_.marks() == 0) return publish(at, lanes_.with(at, store.lane, store.content));
    replace_marked(at, [&](std::uint64_t word) {
        if ((word & lanes_.mark(store.lane)) != 0) {
            const std::uint64_t leaves = lanes_.get(word, store.lane);
            mark_in(lanes_.other_word(store.word, leaves), lanes_.other_content(leaves));
        }
        return lanes_.with(word, store.lane, store.content);
    });
}

void Ipv4Changes::mark_in(std::uint32_t word, std::uint64_t content) {
    replace_marked(words_[word], [&](std::uint64_t now) {
        const std::uint64_t found = lanes_.equal(now, content);
        return found == 0 ? now : now | lanes_.mark(lanes_.lowest(found));
    });
}

void Ipv4Changes::mark(std::uint32_t address) {
    const Found found = find(address, 0);
    if (found.lanes != 0) mark_in(found.word, found.content);
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

Begun Ipv4Changes::insert(std::uint32_t address, std::uint32_t value) {
    const sieve_exact_place at = locate(address);
    const std::uint64_t in_first = lanes_.in_first(at.rest, value);
    const std::uint64_t in_second = lanes_.in_second(at.rest, value);
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

std::optional<Ipv6Changes::Place> Ipv6Changes::find(uint128 address, const Place& but) const {
    if (part_.lines == 0) return std::nullopt;
    const sieve_exact_lines at = lines_of(part_, address);
    for (const std::uint32_t line : {at.first, at.second})
        for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++)
            if (now_at(line, place) == address && (line != but.line || place != but.place))
                return Place{line, place};
    return std::nullopt;
}

void Ipv6Changes::mark_at(const Place& at) {
    replace_marked(lines_[at.line].word[at.place],
                   [](std::uint64_t upper) { return sieve_exact_unmarked(upper) ^ SIEVE_EXACT_IPV6_MARK; });
}

void Ipv6Changes::mark(uint128 address) {
    if (marks_ == 0) return;
    if (const std::optional<Place> at = find(address)) mark_at(*at);
}

void Ipv6Changes::clear_upper(const Put& put) {
    const Place from{put.line, put.place};
    const uint128 leaves = now_at(put.line, put.place);
    replace_marked(lines_[put.line].word[put.place], [&](std::uint64_t upper) {
        if (sieve_exact_unmarked(upper) != upper)
            if (const std::optional<Place> to = find(leaves, from)) mark_at(*to);
        return static_cast<std::uint64_t>(no_address >> 64);
    });
}

std::optional<std::uint32_t> Ipv6Changes::value_of(uint128 address) const {
    const std::optional<Place> at = find(address);
    if (!at) return std::nullopt;
    return values_.empty() ? 0 : value_at(values_, at->line, at->place);
}

void Ipv6Changes::set_value(uint128 address, std::uint32_t value) {
    if (const std::optional<Place> at = find(address)) store_value(*at, value);
}

void Ipv6Changes::store_value(const Place& at, std::uint32_t value) {
    __u64& word = values_of(values_, at.line);
    publish(word, with_value(word, at.place, value));
}

void Ipv6Changes::clear_values() {
    for (const Place& at : stale_)
        if (now_at(at.line, at.place) == no_address) store_value(at, 0);
    stale_.clear();
}

// The order of the two stores. A place whose upper word is zero matches addresses of ::/64 only, so that is
// what it holds in between. `unsettled` names the place meanwhile.
void Ipv6Changes::make(const Put& put) {
    if (put.value) return store_value({put.line, put.place}, *put.value);
    __u64& upper = lines_[put.line].word[put.place];
    __u64& lower = lines_[put.line].word[put.place + SIEVE_EXACT_IPV6_WAYS];
    publish(part_.unsettled, SIEVE_EXACT_WRITING + std::uint64_t{put.line} * SIEVE_EXACT_IPV6_WAYS +
                                 static_cast<std::uint64_t>(put.place));
    if (put.address == no_address) {
        if (marks_ != 0)
            clear_upper(put);
        else
            publish(upper, static_cast<std::uint64_t>(put.address >> 64));
        publish(lower, static_cast<std::uint64_t>(put.address));
        if (!values_.empty()) stale_.push_back({put.line, put.place});
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
            if (now_at(line, place) == address) make({line, place, no_address});
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
            planned.address[place] = now_at(put.line, place);
    if (!put.value) planned.address[put.place] = put.address;
    planned.held |= 1U << put.place;
}

bool Ipv6Changes::visited(std::int32_t step, std::uint32_t line) const {
    for (; step >= 0; step = steps_[static_cast<std::size_t>(step)].before)
        if (steps_[static_cast<std::size_t>(step)].line == line) return true;
    return false;
}

// From the last step back to the first: each address is copied to the place that is free, after its value,
// then its old place is freed, for the one before it.
void Ipv6Changes::begin_moves(uint128 address, std::uint32_t value, int free) {
    std::vector<Put> puts;
    Step to = steps_.back();
    while (to.before >= 0) {
        const Step from = steps_[static_cast<std::size_t>(to.before)];
        if (!values_.empty())
            puts.push_back({to.line, free, no_address, value_at(values_, from.line, to.place)});
        puts.push_back({to.line, free, planned(from.line, to.place)});
        puts.push_back({from.line, to.place, no_address});
        free = to.place;
        to = from;
    }
    if (!values_.empty()) puts.push_back({to.line, free, no_address, value});
    puts.push_back({to.line, free, address});
    for (const Put& put : puts) hold(put);
    scripts_.add(std::move(puts), [this](const Put& put) { make(put); });
}

Begun Ipv6Changes::insert(uint128 address, std::uint32_t value) {
    constexpr std::size_t most_steps = 1U << 14;
    if (part_.lines == 0 || (marks_ != 0 && !can_be_marked(address))) return Begun::nowhere;
    const sieve_exact_lines at = lines_of(part_, address);
    const int first = free_places(at.first);
    const int second = free_places(at.second);
    if (first + second > 0) {
        const std::uint32_t line = first >= second ? at.first : at.second;
        const Put put{line, first_free(line), address};
        if (!values_.empty()) store_value({line, put.place}, value);
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
            begin_moves(address, value, first_free(to));
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
        if (line < lines_.size() && now_at(static_cast<std::uint32_t>(line), place) >> 64 == 0)
            make({static_cast<std::uint32_t>(line), place, no_address});
    }
    for (std::uint32_t line = 0; line < lines_.size(); line++)
        for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++) {
            const uint128 address = now_at(line, place);
            if (address == no_address) continue;
            const sieve_exact_lines at = lines_of(part_, address);
            const auto is_there = [&](std::uint32_t other, int from) {
                for (int i = from; i < SIEVE_EXACT_IPV6_WAYS; i++)
                    if (now_at(other, i) == address) return true;
                return false;
            };
            if (is_there(line, place + 1) || (line != at.first && is_there(at.first, 0)))
                make({line, place, no_address});
        }
    for (std::uint32_t line = 0; line < lines_.size() && !values_.empty(); line++)
        for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++)
            if (now_at(line, place) == no_address && value_at(values_, line, place) != 0)
                stale_.push_back({line, place});
}

std::uint64_t Ipv6Changes::count() const {
    std::uint64_t count = 0;
    for (std::uint32_t line = 0; line < lines_.size(); line++)
        count += static_cast<std::uint64_t>(SIEVE_EXACT_IPV6_WAYS - free_places(line));
    return count;
}

} // namespace sieve::exact
