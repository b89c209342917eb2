// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/dleft/dleft_bucket.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "unit/messages.hpp"

namespace sieve {
namespace {

// Every shape of a bucket; the number of subtables does not matter here.
std::vector<DleftShape> all_shapes() {
    std::vector<DleftShape> shapes;
    for (const bool grouped : {false, true}) {
        for (std::uint32_t sorting = 0; sorting < 2; sorting++)
            shapes.push_back({SIEVE_KIND_DLEFT64, 3, sorting, grouped});
        for (std::uint32_t sorting = 0; sorting < 3; sorting++)
            shapes.push_back({SIEVE_KIND_DLEFT128, 3, sorting, grouped});
    }
    return shapes;
}

std::string name(const DleftShape& shape) {
    return std::string(shape.wide() ? "128" : "64") + ", " + std::to_string(shape.sorting) + " sorted bits" +
           (shape.grouped ? ", grouped" : "");
}

// The rule that assigns counter values, from the paper's description (section II-B), not from the table.
std::vector<std::uint32_t> states_by_rule(bool wide, std::uint32_t sorting) {
    std::vector<std::uint32_t> states;
    for (std::uint32_t a = 0; a <= (wide ? 10U : 6U); a++) {
        std::uint32_t bits = 0;
        if (wide && sorting > 0) bits = sorting == 2 && (a == 6 || a == 7) ? 2 : 1;
        if (!wide && sorting > 0) bits = a == 4 || a == 5 ? 1 : 0;
        const std::uint32_t step = a == 0 ? 1 : a; // c2 and c3 are a unless two bits are sorted
        for (std::uint32_t c1 = bits == 0 ? a : 0; c1 <= a; c1++)
            for (std::uint32_t c2 = bits == 2 ? c1 : a; c2 <= a; c2 += bits == 2 ? 1 : step)
                for (std::uint32_t c3 = bits == 2 ? c2 : a; c3 <= a; c3 += bits == 2 ? 1 : step)
                    states.push_back(a << 12 | c3 << 8 | c2 << 4 | c1);
    }
    return states;
}

TEST(DleftCounter, TablesFollowTheRule) {
    for (std::uint32_t sorting = 0; sorting < 2; sorting++) {
        auto states = states_by_rule(false, sorting);
        EXPECT_EQ(states.size(), sorting == 0 ? 7U : 16U);
        states.resize(16);
        EXPECT_TRUE(std::ranges::equal(states, sieve_dleft_states64[sorting])) << sorting;
    }
    const std::size_t used[] = {11, 66, 255};
    for (std::uint32_t sorting = 0; sorting < 3; sorting++) {
        auto states = states_by_rule(true, sorting);
        EXPECT_EQ(states.size(), used[sorting]);
        ASSERT_LE(states.size(), std::size_t{SIEVE_DLEFT128_OVERFLOW});
        states.resize(256);
        EXPECT_TRUE(std::ranges::equal(states, sieve_dleft_states128[sorting])) << sorting;
    }
}

TEST(DleftCounter, CellTablesFollowTheRule) {
    const auto expect = [](const sieve_dleft_cells& cells, std::uint32_t load, std::uint32_t bits,
                           std::uint32_t words) {
        const std::uint32_t width = std::min(load == 0 ? 1 : bits / load, 60U);
        std::uint64_t feet = 0;
        for (std::uint32_t i = 0; i < load / words; i++) feet |= std::uint64_t{1} << (i * width);
        EXPECT_EQ(cells.feet, feet) << "load " << load;
        EXPECT_EQ(cells.width, width) << "load " << load;
        EXPECT_EQ(cells.load, load);
    };
    for (std::uint32_t a = 0; a <= 6; a++) expect(sieve_dleft_cells64[a], a, 60, 1);
    for (std::uint32_t a = 0; a <= 10; a++) expect(sieve_dleft_cells128[a], a, 120, 2);
    for (std::uint32_t n = 1; n < SIEVE_DLEFT_ALWAYS; n++) expect(sieve_dleft_cells64[16 + n], 6 + n, 56, 1);
    for (std::uint32_t n = 0; n < SIEVE_DLEFT_ALWAYS; n++)
        expect(sieve_dleft_cells128[16 + n], 11 + n, 112, 2);
    expect(sieve_dleft_cells64[16 + SIEVE_DLEFT_ALWAYS], 2, 2, 1);
    expect(sieve_dleft_cells128[16 + SIEVE_DLEFT_ALWAYS], 2, 2, 2);
}

TEST(DleftShape, FingerprintLengthsOfThePaper) {
    const DleftShape plain{.sorting = 0};
    const DleftShape one{.sorting = 1};
    for (const std::uint32_t a : {1U, 2U, 3U, 4U, 5U, 6U}) EXPECT_EQ(plain.fingerprint_length(a), 60 / a);
    for (const std::uint32_t a : {1U, 2U, 3U, 6U}) EXPECT_EQ(one.fingerprint_length(a), 60 / a);
    for (const std::uint32_t a : {4U, 5U}) EXPECT_EQ(one.fingerprint_length(a), 60 / a + 1);
    const DleftShape wide{.kind = SIEVE_KIND_DLEFT128, .sorting = 2};
    for (const std::uint32_t a : {2U, 3U, 4U, 5U, 8U, 9U, 10U})
        EXPECT_EQ(wide.fingerprint_length(a), 120 / a + 1);
    EXPECT_EQ(wide.fingerprint_length(6), 22U);
    EXPECT_EQ(wide.fingerprint_length(7), 19U);
    // Section II-C: the loads 5, 4, 4, 3 leave 15 bits for each fingerprint; 5, 5, 4, 4 leave at least 13.
    EXPECT_EQ(one.grouped_width(16), 15U);
    EXPECT_EQ(one.grouped_width(18), 13U);
}

TEST(DleftShape, RefusesWhatDoesNotExist) {
    EXPECT_TRUE(DleftShape{}.check().has_value());
    EXPECT_FALSE((DleftShape{.subtables = 1}).check().has_value());
    EXPECT_FALSE((DleftShape{.subtables = 5}).check().has_value());
    EXPECT_FALSE((DleftShape{.sorting = 2}).check().has_value());
    EXPECT_FALSE((DleftShape{.kind = SIEVE_KIND_DLEFT128, .sorting = 3}).check().has_value());
    EXPECT_FALSE((DleftShape{.kind = static_cast<sieve_kind>(1)}).check().has_value());
}

TEST(DleftShape, SurvivesTheHeader) {
    for (const DleftShape& shape : all_shapes()) {
        sieve_lookup lookup{};
        store_shape(shape, lookup);
        const DleftShape back = shape_of(lookup);
        EXPECT_EQ(back.kind, shape.kind);
        EXPECT_EQ(back.subtables, shape.subtables);
        EXPECT_EQ(back.sorting, shape.sorting);
        EXPECT_EQ(back.grouped, shape.grouped);
    }
}

// A line of random buckets, and the fingerprints that went into it.
struct RandomLine {
    std::vector<std::vector<std::uint64_t>> tests;
    sieve_line line{};

    RandomLine(const DleftShape& shape, std::mt19937_64& random, std::uint32_t most) {
        tests.resize(shape.buckets_per_line());
        std::vector<std::span<std::uint64_t>> spans;
        for (auto& bucket : tests) {
            bucket.resize(random() % (most + 1));
            for (auto& test : bucket) test = random();
            spans.emplace_back(bucket);
        }
        EXPECT_TRUE(encode_line(shape, spans, line).has_value());
    }
};

// The fingerprint's length by the paper, without the code under test: the length in a bucket of this line.
std::uint32_t expected_length(const DleftShape& shape, const std::vector<std::vector<std::uint64_t>>& tests,
                              std::size_t b) {
    const auto load = static_cast<std::uint32_t>(tests[b].size());
    const std::uint32_t bits = shape.wide() ? 120 : 60;
    std::uint32_t sum = load;
    if (shape.grouped) {
        sum = 0;
        for (std::size_t i = b / 4 * 4; i < b / 4 * 4 + 4; i++)
            if (tests[i].size() <= shape.top_load()) sum += static_cast<std::uint32_t>(tests[i].size());
    }
    if (load > shape.top_load()) return (shape.wide() ? 112 : 56) / load;
    return std::min(60U, (shape.grouped ? 4 * bits : bits) / sum) + shape.sorted_bits(load);
}

bool test_line(const DleftShape& shape, const sieve_line& line, std::uint32_t slot, std::uint64_t test) {
    sieve_lookup lookup{};
    store_shape(shape, lookup);
    return sieve_dleft_in_line(&lookup, &line, slot, test) != 0;
}

// The shared test against the definition: at any load, a fingerprint matches if it agrees with a member of
// its bucket in as many leading bits as the paper gives it.
TEST(DleftTest, MatchesExactlyThePrefixesOfTheMembers) {
    std::mt19937_64 random(1);
    for (const DleftShape& shape : all_shapes()) {
        const std::uint32_t most = shape.grouped && !shape.wide() ? 6 : shape.wide() ? 27 : 22;
        for (int trial = 0; trial < 400; trial++) {
            const RandomLine made(shape, random, trial % 2 == 0 ? most : shape.wide() ? 10 : 6);
            for (std::uint32_t b = 0; b < made.tests.size(); b++) {
                const auto& members = made.tests[b];
                std::vector<std::uint64_t> queries{random(), random()};
                for (const std::uint64_t member : members) {
                    queries.push_back(member);
                    queries.push_back(member ^ (std::uint64_t{1} << (random() % 64)));
                }
                const bool always = members.size() > shape.most_load();
                const std::uint32_t length =
                    always || members.empty() ? 0 : expected_length(shape, made.tests, b);
                if (!always && !members.empty() && length < 64) {
                    // Just inside and just outside the fingerprint.
                    queries.push_back(members[0] ^ (std::uint64_t{1} << (63 - length)));
                    queries.push_back(members[0] ^ (std::uint64_t{1} << (64 - length)));
                }
                for (const std::uint64_t query : queries) {
                    const bool expected = always || std::ranges::any_of(members, [&](std::uint64_t member) {
                                              return (member ^ query) >> (64 - length) == 0;
                                          });
                    ASSERT_EQ(test_line(shape, made.line, b, query), expected)
                        << name(shape) << ", load " << members.size() << ", bucket " << b;
                }
            }
        }
    }
}

TEST(DleftBucket, IsReadAsItWasWritten) {
    std::mt19937_64 random(2);
    for (const DleftShape& shape : all_shapes())
        for (int trial = 0; trial < 200; trial++) {
            const RandomLine made(shape, random, shape.grouped && !shape.wide() ? 6 : 27);
            const auto buckets = decode_line(shape, made.line);
            ASSERT_EQ(buckets.size(), made.tests.size());
            for (std::size_t b = 0; b < buckets.size(); b++) {
                const auto& members = made.tests[b];
                ASSERT_EQ(buckets[b].overflowed, members.size() > shape.top_load()) << name(shape);
                ASSERT_EQ(buckets[b].always, members.size() > shape.most_load()) << name(shape);
                if (buckets[b].always) {
                    EXPECT_EQ(buckets[b].rate(), 1);
                    continue;
                }
                ASSERT_EQ(buckets[b].load, members.size()) << name(shape);
                if (members.empty()) continue;
                ASSERT_EQ(buckets[b].length, expected_length(shape, made.tests, b)) << name(shape);
                std::set<std::uint64_t> distinct;
                for (std::uint32_t i = 0; i < buckets[b].load; i++) { // encode_line put them in order
                    ASSERT_EQ(buckets[b].fingerprints[i], members[i] >> (64 - buckets[b].length))
                        << name(shape);
                    distinct.insert(buckets[b].fingerprints[i]);
                }
                EXPECT_DOUBLE_EQ(buckets[b].rate(), std::ldexp(static_cast<double>(distinct.size()),
                                                               -static_cast<int>(buckets[b].length)));
            }
        }
}

TEST(DleftBucket, BytesDoNotDependOnTheOrderOfTheKeys) {
    std::mt19937_64 random(3);
    for (const DleftShape& shape : all_shapes()) {
        RandomLine made(shape, random, 6);
        std::vector<std::span<std::uint64_t>> spans;
        for (auto& bucket : made.tests) {
            std::ranges::shuffle(bucket, random);
            spans.emplace_back(bucket);
        }
        sieve_line again{};
        ASSERT_TRUE(encode_line(shape, spans, again).has_value());
        EXPECT_TRUE(std::ranges::equal(made.line.word, again.word)) << name(shape);
    }
}

TEST(DleftBucket, BytesArePinned) {
    // Loads 5 and 7 of fingerprints that are easy to read: 64-bit bucket, 13 bits of which 12 are stored.
    std::vector<std::uint64_t> tests;
    for (const std::uint64_t top : {0x00a, 0x7ff, 0x800, 0xabc, 0xfff})
        tests.push_back(top << 52 | 1ULL << 51);
    std::vector<std::span<std::uint64_t>> spans(8);
    spans[0] = tests;
    sieve_line line{};
    ASSERT_TRUE(encode_line({.sorting = 1}, spans, line).has_value());
    // State 9 + 2 zeros; cells 12 bits: (top << 1 | 1) without its leading bit.
    EXPECT_EQ(line.word[0], 0xfff'579'001'fff'015'bULL);
    // One more makes six, ten bits each (002 048 1ff 200 2af 3ff), unsorted, counter 15.
    tests.push_back(0x123ULL << 52);
    spans[0] = tests;
    ASSERT_TRUE(encode_line({.sorting = 1}, spans, line).has_value());
    EXPECT_EQ(line.word[0], 0xffeaf801ff12002fULL);
}

TEST(DleftBucket, GroupedNarrowBucketsCannotOverflow) {
    std::vector<std::uint64_t> tests(7);
    std::vector<std::span<std::uint64_t>> spans(8);
    spans[3] = tests;
    sieve_line line{{1, 2, 3, 4, 5, 6, 7, 8}};
    const Status status = encode_line({.sorting = 1, .grouped = true}, spans, line);
    ASSERT_FALSE(status.has_value());
    expect_error(status, ErrorKind::bad_input);
    EXPECT_EQ(line.word[0], 1U);
    EXPECT_TRUE(encode_line({.sorting = 1}, spans, line).has_value());
}

/// An image from another builder may lack the order. Its rate once came out as 2.
TEST(DleftBucket, RateCountsEqualFingerprintsOnceInAnyOrder) {
    DleftBucket bucket;
    bucket.load = 4;
    bucket.length = 1;
    for (std::size_t i = 0; i < 4; i++) bucket.fingerprints[i] = i % 2;
    EXPECT_EQ(bucket.rate(), 1);
    bucket.length = 3;
    EXPECT_EQ(bucket.rate(), 0.25);
}

TEST(DleftBucket, AnEmptyLineMatchesNothing) {
    std::mt19937_64 random(4);
    for (const DleftShape& shape : all_shapes())
        for (int i = 0; i < 1000; i++) {
            const sieve_line line{};
            EXPECT_FALSE(test_line(shape, line, i % 8, i == 0 ? 0 : random()));
        }
}

// The tests by table against those that derive everything from the counter: buckets of random bits under
// every counter, asked for random fingerprints and for such as they may hold.
TEST(DleftBucket, TablesSayWhatTheCounterSays) {
    std::mt19937_64 random(11);
    int matched = 0;
    for (int i = 0; i < 400'000; i++) {
        // Few ones, so that cells and fingerprints agree often.
        const std::uint64_t ones = i % 2 == 0 ? random() & random() : ~std::uint64_t{15};
        const std::uint64_t a = (random() & ones & ~std::uint64_t{15}) | (random() & 15);
        const std::uint64_t b = (random() & ones & ~std::uint64_t{15}) | (random() & 15);
        const std::uint64_t test = random() & (i % 2 == 0 ? random() & random() : ~std::uint64_t{0});
        if (sieve_dleft64_special(a) == 0) {
            const bool found = sieve_dleft64_bucket(a, test, 1) != 0;
            ASSERT_EQ(sieve_dleft64_plain(a, test) != 0, found) << a << " " << test;
            matched += found ? 1 : 0;
        }
        if (sieve_dleft128_special(a, b) == 0) {
            const bool found = sieve_dleft128_bucket(a, b, test, 2) != 0;
            ASSERT_EQ(sieve_dleft128_plain(a, b, test) != 0, found) << a << " " << b << " " << test;
            matched += found ? 1 : 0;
        }
    }
    EXPECT_GT(matched, 5'000);
    EXPECT_LT(matched, 400'000);
}

} // namespace
} // namespace sieve
