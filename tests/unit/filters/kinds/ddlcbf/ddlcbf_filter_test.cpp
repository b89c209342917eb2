// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_filter.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "unit/messages.hpp"

namespace sieve {
namespace {

std::vector<sieve_hash> random_hashes(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<sieve_hash> hashes(count);
    for (auto& hash : hashes) hash = {random(), random()};
    return hashes;
}

struct Owned {
    sieve_lookup lookup{};
    std::vector<sieve_line> lines;
    DdlcbfFilter filter;

    Owned(const DdlcbfShape& shape, std::uint32_t lines_a_subtable)
        : lookup(header(shape, lines_a_subtable)), lines(std::size_t{lines_a_subtable} * shape.subtables),
          filter(DdlcbfFilter::open(lookup, lines).value()) {}

    static sieve_lookup header(const DdlcbfShape& shape, std::uint32_t lines_a_subtable) {
        sieve_lookup lookup{};
        store_shape(shape, lookup);
        lookup.buckets = lines_a_subtable;
        return lookup;
    }
};

std::vector<DdlcbfShape> all_shapes() {
    std::vector<DdlcbfShape> shapes;
    for (std::uint32_t subtables = 2; subtables <= 4; subtables++)
        for (std::uint32_t counter = 0; counter <= 2; counter++)
            for (const std::uint32_t minimal : {5U, 8U, 10U})
                for (const std::uint32_t fixed : {0U, 4U})
                    shapes.push_back({subtables, counter, minimal, fixed});
    return shapes;
}

TEST(DdlcbfTables, FollowTheRule) {
    std::vector<std::uint32_t> states;
    for (std::uint32_t m = 0; m <= 7; m++)
        for (std::uint32_t c = 0; c <= m; c++)
            for (std::uint32_t z = 0; z <= c; z++) states.push_back(m << 12 | c << 8 | z << 4);
    EXPECT_EQ(states.size(), 120U);
    states.resize(128);
    EXPECT_TRUE(std::ranges::equal(states, sieve_ddlcbf_states));
    for (std::uint32_t counter = 0; counter <= 2; counter++)
        for (std::uint32_t m = 1; m <= 7; m++) {
            const auto& cells = sieve_ddlcbf_cells[counter][m];
            EXPECT_EQ(cells.width, 57 / m - counter);
            EXPECT_EQ(cells.load, m);
            std::uint64_t feet = 0;
            for (std::uint32_t i = 0; i < m; i++) feet |= std::uint64_t{1} << (i * cells.width);
            EXPECT_EQ(cells.feet, feet);
        }
}

// The test of usual filters, which has all of a state in one entry, against the one that reads every form.
TEST(DdlcbfTables, UsualBucketsAnswerAsAnyOthers) {
    std::mt19937_64 random(7);
    std::uint64_t found = 0;
    for (std::uint32_t state = 0; state < 128; state++)
        for (int round = 0; round < 400; round++) {
            const std::uint64_t word = (random() & ~std::uint64_t{127}) | state;
            std::vector<std::uint64_t> remainders{random(), random() | 1ULL << 63, 0, ~std::uint64_t{0}};
            // What the cells hold, with either first bit, and its neighbours.
            const std::uint32_t m = sieve_ddlcbf_states[state] >> 12;
            for (std::uint32_t i = 0; i < m; i++) {
                const std::uint32_t width = 57 / m - 1;
                const std::uint64_t cell = word >> (7 + i * width) & ((std::uint64_t{1} << width) - 1);
                const std::uint64_t top = cell << (63 - width), tail = random() >> (width + 1);
                for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1} << 63})
                    for (const std::uint64_t flip : {std::uint64_t{0}, std::uint64_t{1} << (63 - width)})
                        remainders.push_back((first | top | tail) ^ flip);
            }
            for (const std::uint64_t remainder : remainders) {
                const bool any = sieve_ddlcbf_bucket(word, remainder, 1) != 0;
                ASSERT_EQ(sieve_ddlcbf_plain(word, remainder) != 0, any) << state << " " << std::hex << word;
                found += any ? 1 : 0;
            }
        }
    EXPECT_GT(found, 10'000U);
}

// The inverse of sieve_ddlcbf_permute(). The builder does not need it, but it shows that P_i is a
// permutation.
sieve_ddlcbf_pair unpermute(sieve_ddlcbf_pair pair, std::uint32_t subtable, std::uint32_t buckets,
                            std::uint32_t bits) {
    const __u64* rounds = sieve_ddlcbf_rounds[subtable];
    const std::uint32_t added = sieve_reduce(sieve_ddlcbf_spread(pair.minimal, rounds[1]), buckets);
    pair.bucket = pair.bucket >= added ? pair.bucket - added : pair.bucket + (buckets - added);
    pair.minimal ^= sieve_ddlcbf_spread(pair.bucket, rounds[0]) >> ((32 - bits) & 31);
    return pair;
}

TEST(DdlcbfPermutation, IsOne) {
    for (const std::uint32_t buckets : {1U, 7U, 8U, 24U, 100U, 1000U})
        for (const std::uint32_t bits : {4U, 8U, 11U})
            for (std::uint32_t i = 0; i < 4; i++) {
                std::vector<bool> seen(std::size_t{buckets} << bits);
                for (std::uint32_t b = 0; b < buckets; b++)
                    for (std::uint32_t r = 0; r < 1U << bits; r++) {
                        const sieve_ddlcbf_pair to = sieve_ddlcbf_permute({b, r}, i, buckets, bits);
                        ASSERT_LT(to.bucket, buckets);
                        ASSERT_LT(to.minimal, 1U << bits);
                        const std::size_t at = (std::size_t{to.bucket} << bits) | to.minimal;
                        ASSERT_FALSE(seen[at]);
                        seen[at] = true;
                        const sieve_ddlcbf_pair back = unpermute(to, i, buckets, bits);
                        ASSERT_EQ(back.bucket, b);
                        ASSERT_EQ(back.minimal, r);
                    }
            }
}

TEST(DdlcbfPermutation, WorksForTheLargestTables) {
    std::mt19937_64 random(1);
    for (const std::uint32_t buckets : {0xffffffffU, 0x80000000U, 0x7ffffff8U})
        for (int trial = 0; trial < 10000; trial++)
            for (std::uint32_t i = 0; i < 4; i++) {
                const sieve_ddlcbf_pair from{static_cast<std::uint32_t>(random() % buckets),
                                             static_cast<std::uint32_t>(random() & 255)};
                const sieve_ddlcbf_pair to = sieve_ddlcbf_permute(from, i, buckets, 8);
                ASSERT_LT(to.bucket, buckets);
                const sieve_ddlcbf_pair back = unpermute(to, i, buckets, 8);
                ASSERT_EQ(back.bucket, from.bucket);
                ASSERT_EQ(back.minimal, from.minimal);
            }
}

TEST(DdlcbfPermutation, ChoicesAreSpreadAndDiffer) {
    constexpr std::uint32_t buckets = 1000;
    std::vector<std::uint32_t> hits(std::size_t{4} * buckets);
    int equal = 0;
    const auto hashes = random_hashes(100000, 2);
    for (const auto& hash : hashes) {
        std::uint32_t bucket[4];
        for (std::uint32_t i = 0; i < 4; i++) {
            bucket[i] = sieve_ddlcbf_pair_of(hash, i, buckets, 8).bucket;
            hits[i * buckets + bucket[i]]++;
            for (std::uint32_t j = 0; j < i; j++) equal += bucket[i] == bucket[j] ? 1 : 0;
        }
    }
    double chi_squared = 0;
    for (const auto h : hits) chi_squared += (h - 100.0) * (h - 100.0) / 100;
    EXPECT_NEAR(chi_squared, 3996, 5 * std::sqrt(2 * 3996.0));
    EXPECT_NEAR(equal, 600, 5 * std::sqrt(600.0) + 60); // 6 pairs, one in 1000 each
}

TEST(DdlcbfShape, RefusesWhatDoesNotExist) {
    EXPECT_TRUE(DdlcbfShape{}.check().has_value());
    EXPECT_FALSE((DdlcbfShape{.subtables = 1}).check().has_value());
    EXPECT_FALSE((DdlcbfShape{.subtables = 5}).check().has_value());
    EXPECT_FALSE((DdlcbfShape{.counter_bits = 3}).check().has_value());
    EXPECT_FALSE((DdlcbfShape{.minimal = 3}).check().has_value());
    EXPECT_FALSE((DdlcbfShape{.minimal = 16}).check().has_value());
    EXPECT_FALSE((DdlcbfShape{.minimal = 12, .fixed_cells = 5}).check().has_value());
    sieve_lookup lookup{};
    store_shape(DdlcbfShape{}, lookup);
    lookup.buckets = 2;
    std::vector<sieve_line> lines(8);
    EXPECT_TRUE(DdlcbfFilter::open(lookup, lines).has_value());
    EXPECT_FALSE(DdlcbfFilter::open(lookup, std::span(lines).first(7)).has_value());
    lookup.kind = SIEVE_KIND_DLEFT64;
    EXPECT_FALSE(DdlcbfFilter::open(lookup, lines).has_value());
}

TEST(DdlcbfShape, SurvivesTheHeader) {
    for (const DdlcbfShape& shape : all_shapes()) {
        const DdlcbfShape back = ddlcbf_shape_of(Owned::header(shape, 1));
        EXPECT_EQ(back.subtables, shape.subtables);
        EXPECT_EQ(back.counter_bits, shape.counter_bits);
        EXPECT_EQ(back.minimal, shape.minimal);
        EXPECT_EQ(back.fixed_cells, shape.fixed_cells);
    }
}

// The shared test against the bucket as an object, for buckets with earlier insertions and deletions.
TEST(DdlcbfBucket, WordIsReadAndTestedAsItWasWritten) {
    std::mt19937_64 random(3);
    for (const DdlcbfShape& shape : all_shapes()) {
        const CountingShape bits = shape.bucket();
        CountingBucket bucket;
        std::vector<std::uint64_t> present;
        for (int step = 0; step < 400; step++) {
            if (!present.empty() && random() % 2 == 0) {
                const std::size_t victim = random() % present.size();
                ASSERT_TRUE(bucket.erase(present[victim]));
                present.erase(present.begin() + static_cast<std::ptrdiff_t>(victim));
            } else {
                const std::uint64_t key = (random() % 8 << 61) | (random() >> 8);
                if (bucket.insert(key, bits)) present.push_back(key);
            }
            const std::uint64_t word = encode_counting_bucket(bucket, bits);
            const CountingBucket back = decode_counting_bucket(word, bits);
            ASSERT_EQ(encode_counting_bucket(back, bits), word);
            ASSERT_EQ(back.load(), bucket.load());
            ASSERT_EQ(back.maximum(), bucket.maximum());
            ASSERT_DOUBLE_EQ(back.rate(), bucket.rate());
            std::vector<std::uint64_t> queries{random(), random()};
            for (const std::uint64_t key : present) {
                queries.push_back(key);
                queries.push_back(key ^ (std::uint64_t{1} << (random() % 64)));
            }
            for (const std::uint64_t query : queries) {
                ASSERT_EQ(sieve_ddlcbf_bucket(word, query, shape.counter_bits) != 0, bucket.contains(query));
                ASSERT_EQ(back.contains(query), bucket.contains(query));
            }
            for (const std::uint64_t key : present)
                ASSERT_NE(sieve_ddlcbf_bucket(word, key, shape.counter_bits), 0U);
        }
    }
}

TEST(DdlcbfFilter, FindsEveryKeyAfterAnyHistory) {
    std::mt19937_64 random(4);
    for (const DdlcbfShape& shape : all_shapes()) {
        Owned owned(shape, 8); // 64 buckets a subtable: many keys share bucket and minimal remainder
        std::vector<sieve_hash> present;
        const std::size_t most = 64 * shape.subtables * 3;
        for (int step = 0; step < 6000; step++) {
            const bool remove = !present.empty() && random() % 100 < (present.size() > most ? 60U : 40U);
            if (remove) {
                const std::size_t victim = random() % present.size();
                ASSERT_TRUE(owned.filter.erase(present[victim]).has_value());
                present[victim] = present.back();
                present.pop_back();
            } else {
                const sieve_hash hash = step % 7 == 0 && !present.empty() ? present[random() % present.size()]
                                                                          : sieve_hash{random(), random()};
                if (owned.filter.insert(hash)) present.push_back(hash);
            }
            if (step % 500 != 0) continue;
            for (const auto& hash : present) ASSERT_TRUE(owned.filter.contains(hash));
        }
        for (const auto& hash : present) ASSERT_TRUE(owned.filter.contains(hash));
        ASSERT_EQ(owned.filter.fill().keys, present.size());
        for (const auto& hash : present) ASSERT_TRUE(owned.filter.erase(hash).has_value());
        EXPECT_EQ(owned.filter.fill().keys, 0U);
        EXPECT_EQ(owned.filter.expected_fpr(), 0);
    }
}

TEST(DdlcbfFilter, RefusesWhatWasNotInserted) {
    Owned owned({}, 16);
    const auto hashes = random_hashes(2000, 5);
    for (std::size_t i = 0; i < 1000; i++) ASSERT_TRUE(owned.filter.insert(hashes[i]).has_value());
    const auto before = owned.lines;
    int refused = 0;
    for (std::size_t i = 1000; i < 2000; i++) {
        if (owned.filter.contains(hashes[i])) continue;
        const Status status = owned.filter.erase(hashes[i]);
        ASSERT_FALSE(status.has_value());
        expect_error(status, ErrorKind::bad_input);
        refused++;
    }
    EXPECT_GT(refused, 990);
    EXPECT_EQ(std::memcmp(before.data(), owned.lines.data(), before.size() * sizeof(sieve_line)), 0);
}

TEST(DdlcbfFilter, SaysWhenItIsFull) {
    Owned owned({.subtables = 2}, 1);
    const auto hashes = random_hashes(400, 6);
    std::vector<sieve_hash> present;
    std::optional<Error> full;
    for (const auto& hash : hashes) {
        const auto before = owned.lines;
        if (const Status status = owned.filter.insert(hash)) {
            present.push_back(hash);
        } else {
            full = status.error();
            ASSERT_EQ(std::memcmp(before.data(), owned.lines.data(), before.size() * sizeof(sieve_line)), 0);
        }
    }
    ASSERT_TRUE(full);
    expect_error(*full, ErrorKind::bad_input);
    EXPECT_GE(present.size(), 16U * 5);
    for (const auto& hash : present) EXPECT_TRUE(owned.filter.contains(hash));
}

TEST(DdlcbfFilter, MeasuredRateIsTheExactOne) {
    std::mt19937_64 random(7);
    for (const std::uint32_t subtables : {2U, 3U, 4U}) {
        Owned owned({.subtables = subtables, .counter_bits = 1, .minimal = 8}, 128);
        std::vector<sieve_hash> present;
        for (const auto& hash : random_hashes(std::size_t{4096} * subtables, 8))
            if (owned.filter.insert(hash)) present.push_back(hash);
        EXPECT_GT(present.size(), 4090U * subtables);
        const double expected = owned.filter.expected_fpr();
        EXPECT_GT(expected, 1e-3);
        constexpr int trials = 400000;
        int hits = 0;
        for (int i = 0; i < trials; i++) hits += owned.filter.contains({random(), random()}) ? 1 : 0;
        EXPECT_NEAR(static_cast<double>(hits) / trials, expected, 5 * std::sqrt(expected / trials))
            << subtables;
    }
}

// A reader on another thread never misses a key that is present throughout, however busy the writer is.
TEST(DdlcbfFilter, LookupsGoOnDuringChanges) {
    Owned owned({}, 4);
    const auto stay = random_hashes(250, 9);
    for (const auto& hash : stay) ASSERT_TRUE(owned.filter.insert(hash).has_value());
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> missed{0};
    std::thread reader([&] {
        do
            for (const auto& hash : stay) missed += owned.filter.contains(hash) ? 0 : 1;
        while (!done);
    });
    const auto come = random_hashes(100, 10);
    for (int round = 0; round < 300; round++) {
        std::vector<sieve_hash> in;
        for (const auto& hash : come)
            if (owned.filter.insert(hash)) in.push_back(hash);
        for (const auto& hash : in) ASSERT_TRUE(owned.filter.erase(hash).has_value());
    }
    done = true;
    reader.join();
    EXPECT_EQ(missed, 0U);
}

TEST(DdlcbfFilter, GoldenBytes) {
    // A change here is a change of the image format: raise SIEVE_IMAGE_VERSION.
    const auto bytes = [](const DdlcbfShape& shape) {
        Owned owned(shape, 8);
        for (std::uint64_t i = 1; i <= 500; i++) (void)owned.filter.insert({sieve_mix(i), sieve_mix(~i)});
        for (std::uint64_t i = 1; i <= 500; i += 5) (void)owned.filter.erase({sieve_mix(i), sieve_mix(~i)});
        return XXH3_64bits(owned.lines.data(), owned.lines.size() * sizeof(sieve_line));
    };
    EXPECT_EQ(bytes({}), 0x38f5c63cf2f71dcdU);
    EXPECT_EQ(bytes({.subtables = 2, .counter_bits = 0, .minimal = 6}), 0xd3bed307fce13d47U);
    EXPECT_EQ(bytes({.subtables = 3, .counter_bits = 2, .minimal = 8, .fixed_cells = 5}),
              0x68a9e8f46bfba51dU);
}

} // namespace
} // namespace sieve
