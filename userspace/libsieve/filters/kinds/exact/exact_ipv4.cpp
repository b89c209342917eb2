// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_ipv4.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve::exact {

namespace {

// A large table is filled by shards: the keys whose permuted addresses have the same upper bits. A shard's
// words are consecutive, at most so many, and fit the second-level cache. They are a few times the reach: in
// smaller shards, most keys near a border could not move, and chains would not end.
constexpr std::uint32_t shard_words = 1U << 18;
constexpr std::uint32_t least_reaches = 4;

// A key of a list by its permuted address, without and with a value.
struct Plain {
    std::uint32_t permuted;

    static Plain of(std::uint32_t permuted, std::span<const std::uint16_t>, std::size_t) {
        return {permuted};
    }
    [[nodiscard]] static std::uint32_t value() { return 0; }
};
struct Valued {
    std::uint32_t permuted;
    std::uint32_t own_value;

    static Valued of(std::uint32_t permuted, std::span<const std::uint16_t> values, std::size_t i) {
        return {permuted, values[i]};
    }
    [[nodiscard]] std::uint32_t value() const { return own_value; }
};

// Calls visit(item, place) for each of so many keys in turn, item_at(i) being the i-th, until one returns
// false; returns whether none did. The words of as many keys at a time are requested before the first of
// these keys is placed, so that their cache misses overlap.
template <class ItemAt, class Visit>
bool for_each_place(const sieve_exact& exact, std::span<const __u64> words, std::size_t keys,
                    const ItemAt& item_at, const Visit& visit) {
    constexpr std::size_t at_a_time = 16;
    struct Key {
        std::invoke_result_t<ItemAt, std::size_t> item;
        sieve_exact_place at;
    };
    std::array<Key, at_a_time> next;
    for (std::size_t first = 0; first < keys; first += at_a_time) {
        const std::size_t count = std::min(at_a_time, keys - first);
        for (std::size_t i = 0; i < count; i++) {
            next[i].item = item_at(first + i);
            next[i].at = sieve_exact_locate(&exact, next[i].item.permuted);
            constexpr int to_write = 1;
            __builtin_prefetch(&words[next[i].at.first], to_write);
            __builtin_prefetch(&words[next[i].at.second], to_write);
        }
        for (std::size_t i = 0; i < count; i++)
            if (!visit(next[i].item, next[i].at)) return false;
    }
    return true;
}

std::uint32_t shard_bits(const sieve_exact& exact) {
    std::uint32_t bits = 0;
    while (exact.words >> bits > shard_words && exact.words >> (bits + 1) >= least_reaches * exact.reach)
        bits++;
    return bits;
}

// The permuted addresses, by shards. Each of a fixed number of portions of the list goes to places of its
// own, so the order does not depend on the threads.
template <class Item>
class Scattered {
  public:
    Scattered(const sieve_exact& exact, std::span<const std::uint32_t> addresses,
              std::span<const std::uint16_t> values, std::uint32_t bits)
        : permuted_(addresses.size()), begin_((std::size_t{1} << bits) + 1) {
        constexpr std::size_t portions = 64;
        const std::size_t shards = begin_.size() - 1;
        const std::size_t portion = (addresses.size() + portions - 1) / portions;
        const std::uint32_t shift = 32 - bits;
        const auto part = [&](std::size_t p) {
            const std::size_t first = std::min(addresses.size(), p * portion);
            return addresses.subspan(first, std::min(portion, addresses.size() - first));
        };
        std::vector<std::size_t> to(portions * shards);
        for_each_index(portions, [&](std::size_t p) {
            for (const std::uint32_t address : part(p))
                to[p * shards + (sieve_exact_permute(&exact, address) >> shift)]++;
        });
        std::size_t sum = 0;
        for (std::size_t shard = 0; shard < shards; shard++) {
            begin_[shard] = sum;
            for (std::size_t p = 0; p < portions; p++) sum += std::exchange(to[p * shards + shard], sum);
        }
        begin_[shards] = sum;
        for_each_index(portions, [&](std::size_t p) {
            std::size_t* at = &to[p * shards];
            std::size_t i = p * portion;
            for (const std::uint32_t address : part(p)) {
                const std::uint32_t permuted = sieve_exact_permute(&exact, address);
                permuted_[at[permuted >> shift]++] = Item::of(permuted, values, i++);
            }
        });
    }

    [[nodiscard]] std::span<const Item> shard(std::size_t shard) const {
        return {permuted_.data() + begin_[shard], begin_[shard + 1] - begin_[shard]};
    }

  private:
    HugeArray<Item> permuted_;
    std::vector<std::size_t> begin_;
};

// Fills a table by shards, in three passes.
template <class Item>
class ShardedPlacement {
  public:
    ShardedPlacement(const sieve_exact& exact, std::span<__u64> words, std::uint32_t bits)
        : exact_(exact), lanes_(exact), words_(words), shards_(std::size_t{1} << bits), bits_(bits) {}

    bool run(std::span<const std::uint32_t> addresses, std::span<const std::uint16_t> values,
             std::vector<std::uint32_t>& repeated) {
        const Scattered<Item> scattered(exact_, addresses, values, bits_);
        std::vector<Part> parts(shards_);
        // Keys with both words inside a shard.
        for_each_index(shards_, [&](std::size_t shard) { fill_inside(scattered, shard, parts[shard]); });
        // Those that cross the border to the next shard, between the middles of both.
        for_each_index(shards_ - 1, [&](std::size_t shard) { fill_across(shard, parts[shard]); });
        // Those from the last shard to the first one, and what found no room so far, anywhere.
        parts.back().left.insert(parts.back().left.end(), parts.back().across.begin(),
                                 parts.back().across.end());
        const Inverse inverse(exact_);
        RoomSearch search;
        for (Part& part : parts) {
            for (const Item& item : part.left)
                if (!take(item, sieve_exact_locate(&exact_, item.permuted), {0, exact_.words}, part, search))
                    return false;
            for (const std::uint32_t permuted : part.repeated)
                repeated.push_back(inverse.address_of(permuted));
        }
        return true;
    }

  private:
    struct Part {
        std::vector<Item> across;
        std::vector<Item> left;
        std::vector<std::uint32_t> repeated;
    };

    [[nodiscard]] std::uint32_t edge(std::size_t shard) const {
        return static_cast<std::uint32_t>(
            (static_cast<std::uint64_t>(shard) << (32 - bits_)) * exact_.words >> 32);
    }
    [[nodiscard]] std::uint32_t middle(std::size_t shard) const {
        return edge(shard) + (edge(shard + 1) - edge(shard)) / 2;
    }

    // False: no room.
    bool take(const Item& item, const sieve_exact_place& at, WordRange range, Part& part,
              RoomSearch& search) {
        const Placed placed = place(lanes_, words_, at, item.value(), range, search);
        if (placed == Placed::before) part.repeated.push_back(item.permuted);
        return placed != Placed::nowhere;
    }

    void fill_inside(const Scattered<Item>& scattered, std::size_t shard, Part& part) {
        RoomSearch search;
        // The word at an edge may be of two shards.
        const WordRange range{edge(shard) + (shard > 0 ? 1 : 0),
                              shard + 1 == shards_ ? exact_.words : edge(shard + 1)};
        const std::span<const Item> items = scattered.shard(shard);
        for_each_place(
            exact_, words_, items.size(), [items](std::size_t i) { return items[i]; },
            [&](const Item& item, const sieve_exact_place& at) {
                if (!range.has(at.first) || !range.has(at.second))
                    part.across.push_back(item);
                else if (!take(item, at, range, part, search))
                    part.left.push_back(item);
                return true;
            });
    }

    void fill_across(std::size_t shard, Part& part) {
        RoomSearch search;
        const WordRange range{middle(shard), middle(shard + 1)};
        for (const Item& item : part.across) {
            const sieve_exact_place at = sieve_exact_locate(&exact_, item.permuted);
            if (!range.has(at.first) || !range.has(at.second) || !take(item, at, range, part, search))
                part.left.push_back(item);
        }
        part.across.clear();
    }

    const sieve_exact& exact_;
    Lanes lanes_;
    std::span<__u64> words_;
    std::size_t shards_;
    std::uint32_t bits_;
};

template <class Item>
bool place_items(const sieve_exact& exact, std::span<__u64> words, std::span<const std::uint32_t> addresses,
                 std::span<const std::uint16_t> values, std::vector<std::uint32_t>& repeated) {
    if (const std::uint32_t bits = shard_bits(exact); bits > 0)
        return ShardedPlacement<Item>(exact, words, bits).run(addresses, values, repeated);
    const Lanes lanes(exact);
    RoomSearch search;
    const Inverse inverse(exact);
    const auto item_at = [&](std::size_t i) {
        return Item::of(sieve_exact_permute(&exact, addresses[i]), values, i);
    };
    return for_each_place(
        exact, words, addresses.size(), item_at, [&](const Item& item, const sieve_exact_place& at) {
            const Placed placed = place(lanes, words, at, item.value(), {0, exact.words}, search);
            if (placed == Placed::before) repeated.push_back(inverse.address_of(item.permuted));
            return placed != Placed::nowhere;
        });
}

} // namespace

bool RoomSearch::visited(std::int32_t step, std::uint32_t word) const {
    for (; step >= 0; step = steps_[static_cast<std::size_t>(step)].before)
        if (steps_[static_cast<std::size_t>(step)].word == word) return true;
    return false;
}

void RoomSearch::trace(std::int32_t step, Move last) {
    moves_.assign(1, last);
    for (Step at = steps_[static_cast<std::size_t>(step)]; at.before >= 0;) {
        const Step& before = steps_[static_cast<std::size_t>(at.before)];
        moves_.push_back({before.word, at.lane, moves_.back().from_word, moves_.back().from_lane});
        at = before;
    }
}

Placed place(const Lanes& lanes, std::span<__u64> words, const sieve_exact_place& key, std::uint32_t value,
             WordRange range, RoomSearch& search) {
    __u64& first = words[key.first];
    __u64& second = words[key.second];
    const std::uint64_t in_first = lanes.in_first(key.rest, value);
    const std::uint64_t in_second = lanes.in_second(key.rest, value);
    if ((lanes.equal(first, in_first) | lanes.equal(second, in_second)) != 0) return Placed::before;
    const std::uint64_t free_first = lanes.free(first);
    const std::uint64_t free_second = lanes.free(second);
    if ((free_first | free_second) != 0) {
        if (lanes.how_many(free_first) >= lanes.how_many(free_second))
            first = lanes.with(first, lanes.lowest(free_first), in_first);
        else
            second = lanes.with(second, lanes.lowest(free_second), in_second);
        return Placed::now;
    }
    const auto word_at = [words](std::uint32_t word) { return words[word]; };
    const auto may_move = [](std::uint32_t, std::uint32_t) { return true; };
    if (!search.find(lanes, word_at, may_move, key, range)) return Placed::nowhere;
    for (const Move& move : search.moves()) {
        const std::uint64_t content = lanes.get(words[move.from_word], move.from_lane);
        words[move.to_word] = lanes.with(words[move.to_word], move.to_lane, lanes.other_content(content));
    }
    __u64& word = words[search.word()];
    word = lanes.with(word, search.lane(), search.word() == key.first ? in_first : in_second);
    return Placed::now;
}

bool place_all(const sieve_exact& exact, std::span<__u64> words, std::span<const std::uint32_t> addresses,
               std::span<const std::uint16_t> values, std::vector<std::uint32_t>& repeated) {
    return values.empty() ? place_items<Plain>(exact, words, addresses, values, repeated)
                          : place_items<Valued>(exact, words, addresses, values, repeated);
}

} // namespace sieve::exact
