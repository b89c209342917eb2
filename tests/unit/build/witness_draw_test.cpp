// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/witness_draw.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/filters/sizing.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {
namespace {

BuildSecret secret_of(std::uint64_t seed) {
    return draw_build_secret(seed).value();
}

sieve_key key_of(std::uint32_t address) {
    sieve_key key{};
    key.word[1] = sieve_v4_mapped(address);
    return key;
}

std::vector<std::uint64_t> addresses(const std::vector<sieve_key>& keys) {
    std::vector<std::uint64_t> list;
    for (const sieve_key& key : keys) list.push_back(key.word[1]);
    return list;
}

KeySet keys_of(const std::vector<std::uint32_t>& list) {
    KeySet keys(SIEVE_FIELD_SRC);
    for (const std::uint32_t address : list) keys.add(key_of(address));
    return keys;
}

// Order, repetitions, cuts and threads do not matter.
TEST(WitnessDraw, KnowsOnlyTheSet) {
    std::mt19937 random(1);
    for (const std::uint32_t count : {1U, 64U, 100U, 20'000U, 2'000'000U}) {
        std::vector<std::uint32_t> list(count);
        for (std::uint32_t i = 0; i < count; i++) list[i] = i * 2'654'435'761U;
        WitnessDraw once(secret_of(7));
        once.add(keys_of(list));
        const auto expected = addresses(once.take(count));
        EXPECT_EQ(expected.size(), witness_count(count));
        EXPECT_EQ(std::set<std::uint64_t>(expected.begin(), expected.end()).size(), expected.size());

        for (std::uint32_t i = 0; i < count; i += 3) list.push_back(list[i]);
        for (int i = 0; i < 9'000; i++) list.push_back(list[0]); // more often than all others together
        std::shuffle(list.begin(), list.end(), random);
        const ThreadLimit limit(count % 3 + 1);
        WitnessDraw pieces(secret_of(7));
        for (std::size_t first = 0; first < list.size();) {
            const std::size_t size = std::min<std::size_t>(list.size() - first, random() % (count + 1) + 1);
            pieces.add(keys_of({list.begin() + static_cast<std::ptrdiff_t>(first),
                                list.begin() + static_cast<std::ptrdiff_t>(first + size)}));
            first += size;
        }
        EXPECT_EQ(addresses(pieces.take(count)), expected) << count;
    }
}

// Long lists whose lowest ranks are not where those of a long list of distinct keys are.
TEST(WitnessDraw, KnowsOnlyTheSetOfUnusualLists) {
    const auto key = [](std::uint32_t i) { return i * 2'654'435'761U; };
    constexpr std::uint64_t for_most_witnesses = 1U << 20;
    const auto drawn = [](const std::vector<std::vector<std::uint32_t>>& pieces) {
        WitnessDraw draw(secret_of(8));
        for (const auto& piece : pieces) draw.add(keys_of(piece));
        return addresses(draw.take(for_most_witnesses));
    };
    // The oracle: short lists of distinct keys, one after the other.
    const auto expected = [&](std::uint32_t keys) {
        std::vector<std::vector<std::uint32_t>> pieces;
        for (std::uint32_t i = 0; i < keys; i++) {
            if (i % 1'000 == 0) pieces.emplace_back();
            pieces.back().push_back(key(i));
        }
        return drawn(pieces);
    };
    // A few keys, again and again.
    std::vector<std::uint32_t> few(200'000);
    for (std::uint32_t i = 0; i < few.size(); i++) few[i] = key(i % 3'000);
    EXPECT_EQ(drawn({few}), expected(3'000));
    // A short list, and a long one in which other keys are rare.
    std::vector<std::uint32_t> some(1'000);
    for (std::uint32_t i = 0; i < some.size(); i++) some[i] = key(i);
    std::vector<std::uint32_t> rare(400'000, key(0));
    for (std::uint32_t i = 0; i < 10'000; i++) rare[i * 40] = key(1'000 + i);
    EXPECT_EQ(drawn({some, rare}), expected(11'000));
    // A short list, and a long one of other keys.
    std::vector<std::uint32_t> many(400'000);
    for (std::uint32_t i = 0; i < many.size(); i++) many[i] = key(1'000 + i);
    EXPECT_EQ(drawn({some, many}), expected(401'000));
}

// Over many secrets, each of 1,000 keys is drawn as often as any other.
TEST(WitnessDraw, GivesEachKeyTheSameChance) {
    constexpr std::uint32_t count = 1'000;
    constexpr std::uint64_t secrets = 2'000;
    std::vector<std::uint32_t> list(count);
    for (std::uint32_t i = 0; i < count; i++) list[i] = 0x0a000000U + i;
    const KeySet keys = keys_of(list);
    std::vector<double> drawn(count);
    for (std::uint64_t seed = 0; seed < secrets; seed++) {
        WitnessDraw draw(secret_of(seed));
        draw.add(keys);
        for (const sieve_key& key : draw.take(count))
            drawn[static_cast<std::uint32_t>(key.word[1]) - 0x0a000000U]++;
    }
    // Chi-square with 999 degrees of freedom: mean 999, standard deviation 45; draws without return have
    // less.
    const double share = static_cast<double>(witness_count(count)) / count;
    const double mean = share * secrets;
    double sum = 0;
    for (const double times : drawn) sum += (times - mean) * (times - mean) / (mean * (1 - share));
    EXPECT_LT(sum, 999 + 5 * 45);
    EXPECT_GT(sum, 999 - 5 * 45);
}

} // namespace
} // namespace sieve
