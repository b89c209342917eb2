// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The attacker against filters of known structure: it must find an existing structure, and none where there
// is none.
#include "sieve-lab/simulations/adaptive_attacker.hpp"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace sieve::experiments {
namespace {

constexpr double rate = 1.0 / 512;
constexpr std::uint64_t queries = 400'000;

Target target_of(std::function<bool(const sieve_key&)> matches) {
    return {.matches = std::move(matches),
            .is_member = [](const sieve_key&) { return false; },
            .members = {},
            .elsewhere = {}};
}

double share(const Attack& attack) {
    return static_cast<double>(attack.hits) / static_cast<double>(attack.chosen);
}

Attack play(const std::function<bool(const sieve_key&)>& matches, Strategy strategy,
            const KeySpace& space = KeySpace::ipv4_source()) {
    Random random(7);
    return attack(target_of(matches), space, strategy, queries, random);
}

// A verdict that depends on the whole key and on nothing else: one key in 512 matches.
bool unstructured(const sieve_key& key) {
    return mix(key.word[0] ^ mix(key.word[1] ^ mix(key.word[3] ^ mix(key.word[4])))) % 512 == 0;
}

TEST(AdaptiveAttacker, GainsNothingWhereVerdictsAreIndependent) {
    for (const KeySpace& space :
         {KeySpace::ipv4_source(), KeySpace::ipv6_source(), KeySpace::ipv4_tcp_flow()})
        for (const Strategy strategy : all_strategies) {
            if (strategy == Strategy::near_members || strategy == Strategy::replay) continue; // given nothing
            const Attack attack = play(unstructured, strategy, space);
            ASSERT_GT(attack.chosen, queries / 5) << name(strategy);
            const double error = std::sqrt(rate * (1 - rate) / static_cast<double>(attack.chosen));
            EXPECT_NEAR(share(attack), rate, 4 * error) << name(strategy);
        }
}

TEST(AdaptiveAttacker, RunsOfMembersDoNotHideHits) {
    // Neighbours of neighbours are the same keys. Each may count only once, or misses would outnumber
    // matches.
    Target target = target_of(unstructured);
    const KeySpace space = KeySpace::ipv4_source();
    Random random(5);
    for (int run = 0; run < 40; run++) {
        const sieve_key first = space.random(random);
        for (std::uint64_t i = 0; i < 100; i++)
            target.members.push_back(space.with(first, 0, space.get(first, 0) + i));
    }
    const Attack attack = experiments::attack(target, space, Strategy::near_members, queries, random);
    const double error = std::sqrt(rate / static_cast<double>(attack.chosen));
    EXPECT_NEAR(share(attack), rate, 4 * error);
}

TEST(AdaptiveAttacker, FindsRunsOfNeighbours) {
    const auto runs = [](const sieve_key& key) { return mix(key.word[1] >> 6) % 512 == 0; };
    EXPECT_GT(share(play(runs, Strategy::near_hits)), 5 * rate);
    EXPECT_LT(share(play(runs, Strategy::oblivious)), 1.5 * rate);
}

TEST(AdaptiveAttacker, FindsABitThatVerdictsDoNotDependOn) {
    const auto blind = [](const sieve_key& key) { return mix(key.word[1] & ~(1ULL << 19)) % 512 == 0; };
    // Odd multiples of that bit in the field's last bits come back to the key or to its twin. So some hits
    // are repeated, but the first round of steps has one hit in 64.
    EXPECT_GT(play(blind, Strategy::differences).hits, 300U);
}

TEST(AdaptiveAttacker, FindsAnAffineVerdict) {
    // True where a linear form of the key is small: z + y - x then matches more often than by chance.
    const auto affine = [](const sieve_key& key) {
        return static_cast<std::uint32_t>(key.word[1] * 0x9e3779b1U) < (1U << 23);
    };
    EXPECT_GT(share(play(affine, Strategy::parallelograms)), 100 * rate);
}

TEST(AdaptiveAttacker, RepeatedParallelogramsCountOnce) {
    // 50 false positives make about 60,000 parallelograms, fewer than the attacker draws. Had each draw
    // counted, the share would be a quarter of the rate.
    const auto rare = [](const sieve_key& key) { return mix(key.word[1]) % 4096 == 0; };
    const Attack attack = play(rare, Strategy::parallelograms);
    EXPECT_LT(attack.chosen, queries / 2);
    EXPECT_NEAR(share(attack), 1.0 / 4096, 4 * std::sqrt(1.0 / 4096 / static_cast<double>(attack.chosen)));
}

TEST(AdaptiveAttacker, FindsASettingThatMatchesMoreOften) {
    // One upper half in 32 matches eight times as often.
    const auto heavy = [](const sieve_key& key) {
        return mix(key.word[1]) % 4096 < (mix(key.word[1] >> 16 & 0xffff) % 32 == 0 ? 64U : 8U);
    };
    EXPECT_GT(share(play(heavy, Strategy::half_words)), 2 * rate);
}

TEST(AdaptiveAttacker, CountsNoMemberAndNoKeyTwice) {
    const auto everything = [](const sieve_key&) { return true; };
    Target target = target_of(everything);
    target.is_member = [](const sieve_key& key) { return (key.word[1] & 1) == 0; };
    Random random(1);
    const Attack oblivious =
        attack(target, KeySpace(sieve_key{}, {{1, 0, 8}}), Strategy::oblivious, 10'000, random);
    EXPECT_EQ(oblivious.hits, 128U); // the odd ones, once each
    EXPECT_EQ(oblivious.chosen, 128U);
    EXPECT_EQ(oblivious.positives.size(), 128U);

    target.elsewhere = {oblivious.positives[0], oblivious.positives[0], oblivious.positives[1]};
    const Attack replay = attack(target, KeySpace::ipv4_source(), Strategy::replay, 10, random);
    EXPECT_EQ(replay.hits, 2U);
}

TEST(KeySpace, VariesItsFieldsAndNothingElse) {
    const KeySpace flow = KeySpace::ipv4_tcp_flow();
    Random random(3);
    for (int i = 0; i < 100; i++) {
        const sieve_key key = flow.random(random);
        EXPECT_EQ(key.word[0], 0U);
        EXPECT_EQ(key.word[1] >> 32, 0xffffU);
        EXPECT_EQ(key.word[3] >> 32, 0xffffU);
        EXPECT_EQ(key.word[4] & ~(SIEVE_SPORT_MASK | SIEVE_DPORT_MASK), 6U);
    }
    const sieve_key zero = flow.with(flow.with(flow.random(random), 0, 0), 1, 0);
    EXPECT_EQ(flow.get(flow.with(zero, 1, 0x10000 - 1), 1), 0xffffU);
    EXPECT_EQ(flow.get(flow.with(zero, 1, 0x10000), 1), 0U); // modulo its width
    EXPECT_EQ(flow.get(flow.with(zero, 1, 0x10000), 2), flow.get(zero, 2));
}

} // namespace
} // namespace sieve::experiments
