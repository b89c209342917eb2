// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/placement/line_counters.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace sieve {
namespace {

WideLine wide(const sieve_line& line) {
    WideLine result{};
    for (int w = 0; w < SIEVE_LINE_WORDS; w++) result[w] = line.word[w];
    return result;
}

// Compares with an array of plain integers that stick at the limit of 7.
TEST(LineCounters, CountLikeIntegersThatStickAtSeven) {
    std::mt19937_64 random(1);
    LineCounters counters{};
    std::vector<int> model(SIEVE_LINE_BITS);
    std::vector<sieve_line> added;
    for (int step = 0; step < 4000; step++) {
        // More additions than removals at first, then fewer, so that counters reach both ends.
        const bool add = added.empty() || random() % 100 < (step < 2000 ? 70U : 30U);
        sieve_line pattern{};
        if (add) {
            for (auto& word : pattern.word) word = random() & random() & random();
            added.push_back(pattern);
            counters.add(wide(pattern));
        } else {
            const std::size_t at = random() % added.size();
            pattern = added[at];
            added[at] = added.back();
            added.pop_back();
            const WideLine before = counters.set_without(wide(pattern));
            counters.remove(wide(pattern));
            for (int w = 0; w < SIEVE_LINE_WORDS; w++)
                ASSERT_EQ(before[w] & ~counters.saturated()[w], counters.set()[w] & ~counters.saturated()[w]);
        }
        for (int bit = 0; bit < SIEVE_LINE_BITS; bit++) {
            if (((pattern.word[bit / 64] >> (bit % 64)) & 1) == 0) continue;
            int& count = model[static_cast<std::size_t>(bit)];
            if (add)
                count = std::min(LineCounters::limit, count + 1);
            else if (count < LineCounters::limit)
                count--;
        }
        for (int bit = 0; bit < SIEVE_LINE_BITS; bit++)
            ASSERT_EQ((counters.set()[bit / 64] >> (bit % 64)) & 1,
                      model[static_cast<std::size_t>(bit)] > 0 ? 1U : 0U);
    }
    EXPECT_EQ(*std::max_element(model.begin(), model.end()), LineCounters::limit)
        << "the test must reach the limit";
}

} // namespace
} // namespace sieve
