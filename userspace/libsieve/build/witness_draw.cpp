// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/witness_draw.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include <sieve/hash.h>

#include "libsieve/filters/sizing.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {

namespace {

// Keys are ranked in this many portions, one thread for each.
constexpr std::size_t portions = 16;

// A set of any size has at most this many witnesses.
const std::size_t most_witnesses = witness_count(std::numeric_limits<std::uint64_t>::max());

} // namespace

// The key's hash is random enough; what it says of the rank is not to be what it says of the key's bits.
std::uint64_t WitnessDraw::rank_of(const sieve_key& key, std::uint32_t fields) const {
    return sieve_mix(sieve_hash_key(&key, secret_.hash_key.data(), fields).test ^ secret_.witnesses);
}

void WitnessDraw::keep_lowest(std::vector<Ranked>& ranked) {
    const auto less = [](const Ranked& a, const Ranked& b) {
        return a.first != b.first ? a.first < b.first
                                  : std::memcmp(&a.second, &b.second, sizeof(a.second)) < 0;
    };
    const auto same = [&](const Ranked& a, const Ranked& b) { return !less(a, b) && !less(b, a); };
    std::sort(ranked.begin(), ranked.end(), less);
    ranked.erase(std::unique(ranked.begin(), ranked.end(), same), ranked.end());
    if (ranked.size() > most_witnesses) ranked.resize(most_witnesses);
}

void WitnessDraw::add(const KeySet& keys) {
    constexpr std::uint64_t highest_rank = std::numeric_limits<std::uint64_t>::max();
    if (lowest_.size() == most_witnesses) return add_up_to(lowest_.back().first, keys);
    // Ranks are uniform. So if the keys are many, those with the lowest ranks are hardly ever above twice the
    // rank that the last of them should have. They are if a list repeats itself very often.
    const bool many = keys.size() > 4 * most_witnesses;
    const std::uint64_t likely = many ? highest_rank / keys.size() * 2 * most_witnesses : highest_rank;
    add_up_to(likely, keys);
    const bool all = lowest_.size() == most_witnesses && lowest_.back().first <= likely;
    if (many && !all) add_up_to(highest_rank, keys);
}

void WitnessDraw::add_up_to(std::uint64_t most, const KeySet& keys) {
    std::vector<std::vector<Ranked>> found(portions);
    for_each_index(portions, [&](std::size_t portion) {
        std::vector<Ranked>& own = found[portion];
        std::uint64_t highest = most;
        const auto rank = [&](const sieve_key& key) {
            const std::uint64_t number = rank_of(key, keys.fields());
            if (number > highest) return;
            own.emplace_back(number, key);
            if (own.size() < 2 * most_witnesses) return;
            keep_lowest(own);
            if (own.size() == most_witnesses) highest = std::min(highest, own.back().first);
        };
        keys.for_each(keys.size() * portion / portions, keys.size() * (portion + 1) / portions, rank);
    });
    for (const auto& own : found) lowest_.insert(lowest_.end(), own.begin(), own.end());
    keep_lowest(lowest_);
}

std::vector<sieve_key> WitnessDraw::take(std::uint64_t keys) {
    std::vector<sieve_key> witnesses;
    for (const auto& [rank, key] : lowest_) {
        if (witnesses.size() == witness_count(keys)) break;
        witnesses.push_back(key);
    }
    return witnesses;
}

} // namespace sieve
