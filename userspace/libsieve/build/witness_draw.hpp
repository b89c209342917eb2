// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Draws witnesses from a list of keys of any length in one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <sieve/key.h>

#include "libsieve/build/build_secret.hpp"
#include "libsieve/keys/key_set.hpp"

namespace sieve {

// A secret gives each key a rank, and the keys of the lowest ranks are the witnesses. So every key has
// the same chance, however often a list repeats it, and neither the order of the keys nor the cuts between
// several calls of add() matter.
class WitnessDraw {
  public:
    explicit WitnessDraw(const BuildSecret& secret) : secret_(secret) {}

    // Takes part of the list. Runs in parallel.
    void add(const KeySet& keys);

    // The witnesses of a set of `keys` distinct keys (witness_count() of them, or all if there are fewer).
    [[nodiscard]] std::vector<sieve_key> take(std::uint64_t keys);

  private:
    using Ranked = std::pair<std::uint64_t, sieve_key>;
    static void keep_lowest(std::vector<Ranked>& ranked);
    // Takes the keys whose rank is at most `most`.
    void add_up_to(std::uint64_t most, const KeySet& keys);

    [[nodiscard]] std::uint64_t rank_of(const sieve_key& key, std::uint32_t fields) const;

    BuildSecret secret_;
    std::vector<Ranked> lowest_; // distinct, by rank
};

} // namespace sieve
