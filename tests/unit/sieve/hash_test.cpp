// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include <sieve/hash.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace {

std::array<__u64, SIEVE_HASH_KEY_WORDS> hash_key(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::array<__u64, SIEVE_HASH_KEY_WORDS> key{};
    for (auto& word : key) word = random();
    return key;
}

sieve_key random_key(std::mt19937_64& random) {
    sieve_key key{};
    for (auto& word : key.word) word = random();
    key.word[4] &= sieve_transport_mask(SIEVE_FIELD_TRANSPORT);
    return key;
}

// UMAC's NH of one pair of words, by the paper's definition over the integers.
TEST(Hash, NhStepIsTheDefinition) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 1000; i++) {
        const std::uint64_t word = random();
        const std::uint64_t key = random();
        const std::uint64_t two32 = std::uint64_t{1} << 32;
        const unsigned __int128 product =
            static_cast<unsigned __int128>((word % two32 + key % two32) % two32) *
            ((word / two32 + key / two32) % two32);
        EXPECT_EQ(sieve_nh_step(word, key), static_cast<std::uint64_t>(product));
    }
}

// SplitMix64's published first outputs for seed 1234567: its finaliser is our mix.
TEST(Hash, MixIsStaffordsThirteenth) {
    std::uint64_t state = 1234567;
    const std::array<std::uint64_t, 5> expected = {6457827717110365317ULL, 3203168211198807973ULL,
                                                   9817491932198370423ULL, 4593380528125082431ULL,
                                                   16408922859458223821ULL};
    for (const auto value : expected) EXPECT_EQ(sieve_mix(state += 0x9e3779b97f4a7c15ULL), value);
}

// Only the selected fields count, and each of them does count.
TEST(Hash, DependsOnExactlyTheSelectedFields) {
    const auto secret = hash_key(2);
    std::mt19937_64 random(3);
    struct Part {
        std::uint32_t field;
        int word;
        std::uint64_t flip;
    };
    const std::array<Part, 7> parts = {{{SIEVE_FIELD_SRC, 0, 1ULL << 40},
                                        {SIEVE_FIELD_SRC, 1, 1},
                                        {SIEVE_FIELD_DST, 2, 1ULL << 63},
                                        {SIEVE_FIELD_DST, 3, 1ULL << 31},
                                        {SIEVE_FIELD_SPORT, 4, 1ULL << SIEVE_SPORT_SHIFT},
                                        {SIEVE_FIELD_DPORT, 4, 1ULL << SIEVE_DPORT_SHIFT},
                                        {SIEVE_FIELD_PROTO, 4, 1ULL << SIEVE_PROTO_SHIFT}}};
    for (std::uint32_t fields = 1; fields <= SIEVE_FIELD_ALL; fields++) {
        const sieve_key key = random_key(random);
        const sieve_hash hash = sieve_hash_key(&key, secret.data(), fields);
        for (const auto& part : parts) {
            sieve_key other = key;
            other.word[part.word] ^= part.flip;
            const sieve_hash changed = sieve_hash_key(&other, secret.data(), fields);
            const bool same = hash.locate == changed.locate && hash.test == changed.test;
            EXPECT_EQ(same, (fields & part.field) == 0) << "fields " << fields << " part " << part.field;
        }
    }
}

// Each of the 128 output bits flips with chance 1/2 when an input bit flips, over random secrets. 4,096
// trials have a standard deviation of 32, and 40 x 128 pairs of bits stay within 5.5 of these.
TEST(Hash, Avalanches) {
    constexpr int trials = 4096;
    std::mt19937_64 random(4);
    for (int input = 0; input < 40; input++) {
        std::array<int, 128> flips{};
        for (int t = 0; t < trials; t++) {
            const auto secret = hash_key(random());
            sieve_key key{};
            key.word[1] = sieve_v4_mapped(static_cast<std::uint32_t>(random()));
            key.word[4] = random() & sieve_transport_mask(SIEVE_FIELD_TRANSPORT);
            sieve_key other = key;
            if (input < 32)
                other.word[1] ^= 1ULL << input;
            else
                other.word[4] ^= 1ULL << (input - 32 + SIEVE_DPORT_SHIFT);
            const std::uint32_t fields = SIEVE_FIELD_SRC | SIEVE_FIELD_TRANSPORT;
            const sieve_hash a = sieve_hash_key(&key, secret.data(), fields);
            const sieve_hash b = sieve_hash_key(&other, secret.data(), fields);
            for (int bit = 0; bit < 64; bit++) {
                flips[static_cast<std::size_t>(bit)] += static_cast<int>(((a.locate ^ b.locate) >> bit) & 1);
                flips[static_cast<std::size_t>(64 + bit)] += static_cast<int>(((a.test ^ b.test) >> bit) & 1);
            }
        }
        for (const int count : flips) EXPECT_NEAR(count, trials / 2, 5.5 * std::sqrt(trials) / 2);
    }
}

// A differential that holds for every seed defeats a keyed hash without knowledge of the key. Pairs that
// differ in the upper bits of two words always collide in plain multiply-xorshift chains. Here they do not
// collide in a million seeds.
TEST(Hash, HasNoSeedIndependentCollisions) {
    std::mt19937_64 random(5);
    const std::array<std::pair<std::uint64_t, std::uint64_t>, 4> differences = {
        {{1ULL << 63, 1ULL << 63},
         {1ULL << 63, (1ULL << 63) | (1ULL << 34)},
         {1ULL << 31, 1ULL << 63},
         {1ULL << 32, 1}}};
    int collisions = 0;
    for (int t = 0; t < 1'000'000; t++) {
        const auto& [first, second] = differences[static_cast<std::size_t>(t) % differences.size()];
        std::array<__u64, SIEVE_HASH_KEY_WORDS> secret{};
        for (auto& word : secret) word = random();
        const sieve_key key = random_key(random);
        sieve_key other = key;
        other.word[0] ^= first;
        other.word[1] ^= second;
        const sieve_hash a = sieve_hash_key(&key, secret.data(), SIEVE_FIELD_SRC);
        const sieve_hash b = sieve_hash_key(&other, secret.data(), SIEVE_FIELD_SRC);
        collisions += static_cast<int>(a.locate == b.locate && a.test == b.test);
    }
    EXPECT_EQ(collisions, 0);
}

TEST(Hash, ReduceStaysBelowAndIsEven) {
    EXPECT_EQ(sieve_reduce(0, 7), 0U);
    EXPECT_EQ(sieve_reduce(0xffffffff, 7), 6U);
    EXPECT_EQ(sieve_reduce(0xffffffff, 1), 0U);
    EXPECT_EQ(sieve_reduce(0xffffffff, 0xffffffff), 0xfffffffeU);
    std::array<int, 7> hits{};
    std::mt19937 random(6);
    for (int i = 0; i < 70'000; i++) hits[sieve_reduce(static_cast<std::uint32_t>(random()), 7)]++;
    for (const int count : hits) EXPECT_NEAR(count, 10'000, 5 * std::sqrt(10'000.0));
}

} // namespace
