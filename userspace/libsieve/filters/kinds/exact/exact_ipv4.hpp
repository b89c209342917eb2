// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Places IPv4 addresses in a table (sieve/exact_table.h): each in whichever of its two words has more room.
// If both are full, keys move to their other words, along the shortest chain that ends at a free lane (cuckoo
// hashing with breadth-first search: Dietzfelbinger, Weidling 2007).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sieve/exact_table.h>

#include "libsieve/filters/kinds/exact/exact_lanes.hpp"

namespace sieve::exact {

/// One key moves from a lane to one that is free.
struct Move {
    std::uint32_t from_word;
    std::uint32_t from_lane;
    std::uint32_t to_word;
    std::uint32_t to_lane;
};

/// Words that may be used: from `low` to before `high`.
struct WordRange {
    std::uint32_t low;
    std::uint32_t high;

    [[nodiscard]] bool has(std::uint32_t word) const { return word >= low && word < high; }
};

/// Finds the moves that make room for a key. Keep one for many searches: it reuses its memory.
class RoomSearch {
  public:
    /// False: there is no chain of moves among the first words that the search visits. Else moves() frees
    /// lane() of word(), which is one of the key's two; `word` is full, and so is the other one. `word_at`
    /// tells a word's content by its number; may_move(word, lane) whether the key there may leave its lane.
    template <class WordAt, class MayMove>
    [[nodiscard]] bool find(const Lanes& lanes, const WordAt& word_at, const MayMove& may_move,
                            const sieve_exact_place& key, WordRange range);

    /// In the order in which they are to be made, so that every key is always in one of its words: the first
    /// one goes to a free lane, each other one to the lane that the one before it has left.
    [[nodiscard]] std::span<const Move> moves() const { return moves_; }
    [[nodiscard]] std::uint32_t word() const { return moves_.back().from_word; }
    [[nodiscard]] std::uint32_t lane() const { return moves_.back().from_lane; }

  private:
    // A search that has seen so many words gives up. It then costs a fraction of a millisecond, and another
    // draw of secrets promises more. Near the highest loads, 4,000 words are too few for 10^7 keys.
    static constexpr std::size_t most_steps = 1U << 14;

    struct Step {
        std::uint32_t word;
        std::int32_t before; // the step whose key would come here; -1: the new key would
        std::uint32_t lane;  // of that step's word
    };
    [[nodiscard]] bool visited(std::int32_t step, std::uint32_t word) const;
    void trace(std::int32_t step, Move last);

    std::vector<Step> steps_;
    std::vector<Move> moves_;
};

template <class WordAt, class MayMove>
bool RoomSearch::find(const Lanes& lanes, const WordAt& word_at, const MayMove& may_move,
                      const sieve_exact_place& key, WordRange range) {
    steps_.assign({{key.first, -1, 0}, {key.second, -1, 0}});
    for (std::size_t at = 0; at < steps_.size() && steps_.size() < most_steps; at++) {
        const std::uint32_t from = steps_[at].word;
        const std::uint64_t word = word_at(from);
        for (std::uint32_t lane = 0; lane < lanes.count(); lane++) {
            if (!may_move(from, lane)) continue;
            const std::uint32_t to = lanes.other_word(from, lanes.get(word, lane));
            if (!range.has(to)) continue;
            const auto step = static_cast<std::int32_t>(at);
            if (const std::uint64_t free = lanes.free(word_at(to)); free != 0) {
                trace(step, {from, lane, to, lanes.lowest(free)});
                return true;
            }
            // A chain through a word that it has left already would move a key that is not there any more.
            if (!visited(step, to)) steps_.push_back({to, step, lane});
        }
    }
    return false;
}

enum class Placed {
    now,     ///< the key is in the table now
    before,  ///< it was there already
    nowhere, ///< there is no room for it; nothing has changed
};

/// Places one key with its value. Nobody reads the words meanwhile. If it was there before, it keeps the
/// value that it had.
[[nodiscard]] Placed place(const Lanes& lanes, std::span<__u64> words, const sieve_exact_place& key,
                           std::uint32_t value, WordRange range, RoomSearch& search);

/// Places all addresses in empty words, on several threads. `values` has the value of each; it is empty if
/// all are 0. The outcome depends on the geometry, the secrets and the order of the addresses alone. Adds the
/// addresses that were listed before, whose first value counts, to `repeated`. False: there is no room for
/// all.
[[nodiscard]] bool place_all(const sieve_exact& exact, std::span<__u64> words,
                             std::span<const std::uint32_t> addresses, std::span<const std::uint16_t> values,
                             std::vector<std::uint32_t>& repeated);

} // namespace sieve::exact
