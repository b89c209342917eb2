// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/bloom/counting_bloom.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/filters/kinds/bloom/bloom_placement.hpp"

namespace sieve {
namespace {

CountingBloom make(std::uint32_t lines, std::uint32_t hashes) {
    auto made = CountingBloom::create(lines, hashes);
    EXPECT_TRUE(made);
    return std::move(*made);
}

std::vector<sieve_line> plain(const std::vector<sieve_hash>& keys, std::uint32_t lines, std::uint8_t hashes) {
    sieve_lookup lookup{};
    lookup.choices = 1;
    lookup.hashes = hashes;
    lookup.buckets = lines;
    std::vector<sieve_line> filter(lines);
    place_bloom(keys, lookup, filter, {}, {});
    return filter;
}

bool same(const std::vector<sieve_line>& a, const std::vector<sieve_line>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const sieve_line& x, const sieve_line& y) {
        return std::equal(std::begin(x.word), std::end(x.word), std::begin(y.word));
    });
}

TEST(NibbleCounters, CountLikeIntegersThatStickAtFifteen) {
    std::mt19937_64 random(1);
    constexpr std::uint64_t size = 1024;
    NibbleCounters counters(size);
    std::vector<std::uint64_t> model(size);
    for (int step = 0; step < 60'000; step++) {
        const std::uint64_t at = random() % size;
        if (random() % 100 < (step < 30'000 ? 60U : 40U)) {
            counters.increment(at);
            model[at] = std::min<std::uint64_t>(15, model[at] + 1);
        } else {
            counters.decrement(at); // also at zero
            if (model[at] != 15 && model[at] != 0) model[at]--;
        }
        ASSERT_EQ(counters[at], model[at]);
    }
    for (std::uint64_t at = 0; at < size; at++) ASSERT_EQ(counters[at], model[at]);
    const auto count = [&model](auto predicate) {
        return static_cast<std::uint64_t>(std::count_if(model.begin(), model.end(), predicate));
    };
    EXPECT_EQ(counters.ones(), count([](auto c) { return c != 0; }));
    EXPECT_EQ(counters.saturated(), count([](auto c) { return c == 15; }));
    EXPECT_GT(counters.saturated(), 0U) << "the test must reach the limit";
    EXPECT_LT(counters.ones(), size) << "and zero";
    std::vector<sieve_line> lines(size / SIEVE_LINE_BITS);
    counters.write(lines);
    for (std::uint64_t at = 0; at < size; at++)
        ASSERT_EQ(lines[at / 512].word[at % 512 / 64] >> (at % 64) & 1, model[at] != 0 ? 1U : 0U);
}

// After any sequence of insertions and deletions, the filter equals one built from the remaining keys.
TEST(CountingBloom, IsTheFilterOfTheKeysThatAreIn) {
    std::mt19937_64 random(2);
    for (const std::uint8_t hashes : {std::uint8_t{1}, std::uint8_t{7}, std::uint8_t{32}}) {
        constexpr std::uint32_t lines = 40;
        CountingBloom counting = make(lines, hashes);
        std::vector<sieve_hash> in;
        for (int step = 0; step < 3000; step++) {
            if (in.empty() || random() % 100 < (step < 1500 ? 80U : 30U)) {
                in.push_back({random(), random()});
                counting.insert(in.back());
            } else {
                std::swap(in[random() % in.size()], in.back());
                ASSERT_TRUE(counting.remove(in.back()));
                in.pop_back();
            }
            if (step % 500 != 0) continue;
            for (const auto& key : in) ASSERT_TRUE(counting.contains(key));
            std::vector<sieve_line> written(lines);
            counting.write(written);
            ASSERT_EQ(counting.saturated(), 0U);
            ASSERT_TRUE(same(written, plain(in, lines, hashes)));
        }
    }
}

TEST(CountingBloom, RefusesToDeleteWhatIsCertainlyAbsent) {
    std::mt19937_64 random(3);
    CountingBloom counting = make(20, 8);
    std::vector<sieve_hash> in;
    for (int i = 0; i < 500; i++) {
        in.push_back({random(), random()});
        counting.insert(in.back());
    }
    std::vector<sieve_line> before(20);
    counting.write(before);
    int refused = 0;
    for (int i = 0; i < 500; i++) {
        const sieve_hash non_member = {random(), random()};
        if (counting.contains(non_member)) continue;
        const Status removed = counting.remove(non_member);
        ASSERT_FALSE(removed);
        EXPECT_EQ(removed.error().kind, ErrorKind::bad_input);
        refused++;
    }
    EXPECT_GT(refused, 450);
    std::vector<sieve_line> after(20);
    counting.write(after);
    EXPECT_TRUE(same(before, after));
    for (const auto& key : in) EXPECT_TRUE(counting.contains(key));
    // Deleting a key that has been deleted is refused.
    const double ones = counting.fraction_of_ones();
    ASSERT_TRUE(counting.remove(in[0]));
    EXPECT_LT(counting.fraction_of_ones(), ones);
    EXPECT_FALSE(counting.remove(in[0]));
}

TEST(CountingBloom, ReportsSaturationAndNeverLosesAKeyToIt) {
    std::mt19937_64 random(4);
    CountingBloom counting = make(1, 3);
    const sieve_hash often = {random(), random()};
    const sieve_hash once = often; // the same probes: another key that lives on the same bits
    for (int i = 0; i < 20; i++) counting.insert(often);
    counting.insert(once);
    EXPECT_GE(counting.saturated(), 1U);
    EXPECT_LE(counting.saturated(), 3U);
    for (int i = 0; i < 20; i++) ASSERT_TRUE(counting.remove(often));
    EXPECT_TRUE(counting.contains(once));
}

TEST(CountingBloom, RefusesShapesThatCannotBe) {
    for (const auto& [lines, hashes] : {std::pair{0U, 3U}, {1U, 0U}, {1U, 33U}, {(1U << 29) + 1, 3U}}) {
        const auto made = CountingBloom::create(lines, hashes);
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().kind, ErrorKind::invalid_request);
    }
}

} // namespace
} // namespace sieve
