// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/placement/shards.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <sieve/blocked.h>
#include <sieve/dleft.h>

#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/placement/distinct_hashes.hpp"

namespace sieve {
namespace {

sieve_lookup geometry(std::uint64_t lines, std::uint32_t choices) {
    sieve_lookup lookup{};
    lookup.kind = SIEVE_KIND_BLOCKED;
    lookup.choices = static_cast<__u8>(choices);
    lookup.hashes = 8;
    lookup.buckets = static_cast<__u32>(lines);
    lookup.shard_bits = static_cast<__u8>(shard_bits_for(lines));
    lookup.alpha = 0xffff;
    return lookup;
}

std::vector<sieve_hash> random_hashes(std::size_t count) {
    std::mt19937_64 random(count);
    std::vector<sieve_hash> hashes(count);
    for (auto& hash : hashes) hash = {random(), random()};
    return hashes;
}

TEST(Shards, HaveTwoToFourThousandLines) {
    for (const std::uint64_t lines : {1U, 2U, 2047U, 2048U, 4095U}) EXPECT_EQ(shard_bits_for(lines), 0U);
    for (const std::uint64_t lines : {4096U, 5001U, 8191U}) EXPECT_EQ(shard_bits_for(lines), 1U) << lines;
    EXPECT_EQ(shard_bits_for(8192), 2U);
    EXPECT_EQ(shard_bits_for(0xffffffff), 20U);
    std::mt19937_64 random(1);
    for (int i = 0; i < 10'000; i++) {
        const std::uint64_t lines = 1 + (random() & 0xffffffff) / (random() % 1'000'000 + 1);
        const std::uint64_t whole = whole_shards(lines);
        const std::uint64_t shards = std::uint64_t{1} << shard_bits_for(whole);
        EXPECT_GE(whole, lines);
        EXPECT_LE(whole - lines, lines / 2048) << lines;
        EXPECT_EQ(whole % shards, 0U) << lines;
        EXPECT_LT(whole / shards, 4096U) << lines;
        EXPECT_EQ(whole_shards(whole), whole);
    }
    for (std::uint32_t subtables = 2; subtables <= 4; subtables++)
        for (int i = 0; i < 10'000; i++) {
            const std::uint64_t lines = 1 + (random() & 0x3fffffff) / (random() % 1'000'000 + 1);
            const std::uint64_t whole = whole_shards(lines, subtables);
            const std::uint64_t shards = std::uint64_t{1} << shard_bits_for(whole * subtables);
            EXPECT_GE(whole, lines);
            EXPECT_LE(whole - lines, lines * subtables / 2048) << lines;
            EXPECT_EQ(whole % shards, 0U) << lines;
            EXPECT_TRUE(shards == 1 || whole * subtables / shards >= 2048U) << lines;
            EXPECT_LT(whole * subtables / shards, 4096U) << lines;
        }
    EXPECT_EQ(whole_shards(4095), 4095U);
    EXPECT_EQ(whole_shards(8191), 8192U);
}

// Every line of a key is in the shard that its first line is in, by division. Each line of a shard is drawn,
// and none more than others.
TEST(Shards, HoldAllLinesOfAKey) {
    for (const std::uint64_t lines :
         {4095U, 4096U, 5000U, 20'480U, 1U << 20, 4'000'000'000U - 4'000'000'000U % (1U << 20)})
        for (const std::uint32_t choices : {2U, 3U}) {
            const sieve_lookup lookup = geometry(lines, choices);
            const std::uint64_t shard_lines = lines >> lookup.shard_bits;
            std::vector<std::uint32_t> drawn(8);
            for (const sieve_hash& hash : random_hashes(80'000)) {
                std::uint32_t at[SIEVE_MAX_CHOICES];
                sieve_blocked_locate(&lookup, hash, at);
                for (std::uint32_t c = 0; c < choices; c++) {
                    ASSERT_EQ(at[c] / shard_lines, at[0] / shard_lines) << lines;
                    ASSERT_LT(at[c], lines);
                }
                drawn[at[choices - 1] % shard_lines * 8 / shard_lines]++;
            }
            // 10,000 each, with a standard deviation of 94; shards of any size are cut into eight within a
            // line or two, of at least 2048.
            for (const std::uint32_t count : drawn) EXPECT_NEAR(count, 10'000, 500) << lines;
        }
}

// The same for d-left: the lines of a key in all subtables are in shards of the same number.
TEST(Shards, OfSubtablesHoldAllBucketsOfAKey) {
    for (const sieve_kind kind : {SIEVE_KIND_DLEFT64, SIEVE_KIND_DLEFT128})
        for (const std::uint64_t wanted : {1000U, 4095U, 20'480U, 1U << 20, SIEVE_DLEFT_MAX_LINES})
            for (const std::uint32_t subtables : {2U, 3U, 4U}) {
                const std::uint64_t lines = whole_shards(wanted, subtables);
                sieve_lookup lookup = geometry(lines, subtables);
                lookup.kind = static_cast<__u8>(kind);
                lookup.shard_bits = static_cast<__u8>(shard_bits_for(lines * subtables));
                const std::uint64_t shard_lines = lines >> lookup.shard_bits;
                const std::uint32_t buckets_a_line = kind == SIEVE_KIND_DLEFT64 ? 8 : 4;
                std::vector<std::uint32_t> drawn(8), positions(buckets_a_line);
                for (const sieve_hash& hash : random_hashes(80'000)) {
                    std::uint32_t at[SIEVE_DLEFT_MAX_SUBTABLES], position[SIEVE_DLEFT_MAX_SUBTABLES];
                    sieve_dleft_locate(&lookup, hash, at, position);
                    for (std::uint32_t i = 0; i < subtables; i++) {
                        ASSERT_EQ(at[i] / lines, i);
                        ASSERT_EQ(at[i] % lines / shard_lines, at[0] / shard_lines) << lines;
                    }
                    drawn[at[subtables - 1] % lines % shard_lines * 8 / shard_lines]++;
                    positions[position[subtables - 1]]++;
                }
                for (const std::uint32_t count : drawn) EXPECT_NEAR(count, 10'000, 500) << lines;
                for (const std::uint32_t count : positions)
                    EXPECT_NEAR(count, 80'000 / buckets_a_line, 800) << lines; // 5.6 sigma and more
            }
}

TEST(Shards, KeysLieSideBySide) {
    std::vector<sieve_hash> keys = random_hashes(10'000);
    keys.push_back({0, 0});
    keys.push_back({0xffffffff, 5});
    std::sort(keys.begin(), keys.end(), hash_order);
    for (const std::uint64_t lines : {100U, 4096U, 32'768U, 100'000'256U}) {
        const sieve_lookup lookup = geometry(whole_shards(lines), 1);
        const std::uint64_t shard_lines = lookup.buckets >> lookup.shard_bits;
        std::size_t seen = 0;
        for (std::uint32_t shard = 0; shard < 1U << lookup.shard_bits; shard++)
            for (const sieve_hash& hash : keys_of_shard(keys, lookup.shard_bits, shard)) {
                std::uint32_t at[SIEVE_MAX_CHOICES];
                sieve_blocked_locate(&lookup, hash, at);
                ASSERT_EQ(at[0] / shard_lines, shard);
                seen++;
            }
        EXPECT_EQ(seen, keys.size());
    }
}

// Only equal shards of enough lines are read: everything else is not ours.
TEST(Shards, OfAnImageAreChecked) {
    sieve_lookup lookup = geometry(8192, 2);
    lookup.fields = SIEVE_FIELD_SRC;
    EXPECT_EQ(geometry_fault(lookup), "");
    lookup.shard_bits = 1; // larger shards are fine
    EXPECT_EQ(geometry_fault(lookup), "");
    for (const int bits : {3, 12, 31, 32, 64, 255}) {
        lookup.shard_bits = static_cast<__u8>(bits);
        EXPECT_NE(geometry_fault(lookup), "") << bits;
    }
    lookup.shard_bits = 2;
    for (const std::uint32_t lines : {8191U, 8193U, 8190U, 9001U}) {
        lookup.buckets = lines;
        EXPECT_NE(geometry_fault(lookup), "") << lines;
    }
}

} // namespace
} // namespace sieve
