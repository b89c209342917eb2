// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The solver against Gaussian elimination of the same equations, bit by bit and class by class.
#include "libsieve/filters/kinds/xorsat/xorsat_solver.hpp"

#include <gtest/gtest.h>

#include <bitset>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

namespace sieve {
namespace {

std::vector<sieve_hash> random_hashes(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<sieve_hash> hashes(count);
    for (auto& hash : hashes) hash = {random(), random()};
    return hashes;
}

// An equation: the line's bits, and the right side behind them.
using Equation = std::bitset<SIEVE_LINE_BITS + 1>;

Equation equation(const sieve_hash& key, unsigned j) {
    Equation result;
    for (unsigned window = 0; window < 9; window++) {
        const unsigned inside = (key.test >> 6 * window & 63) + j;
        if (inside < 64 && 56 * window + inside >= 16) result.flip(56 * window + inside);
    }
    result.flip(448 + (key.test >> 57 & 15) + j);
    result[SIEVE_LINE_BITS] = (key.locate >> 32 >> j & 1) != 0;
    return result;
}

// Adds the equations of each q in turn, until they contradict each other.
std::uint32_t largest_q(const std::vector<sieve_hash>& keys) {
    std::vector<std::optional<Equation>> by_first_bit(SIEVE_LINE_BITS);
    for (std::uint32_t q = 1; q <= SIEVE_XORSAT_MAX_Q; q++)
        for (const sieve_hash& key : keys) {
            // At q, a key of class c compares (q + c) / 8 bits.
            const auto c = static_cast<std::uint32_t>(key.test >> 61);
            if ((q + c) / 8 == (q - 1 + c) / 8) continue;
            Equation left = equation(key, (q + c) / 8 - 1);
            unsigned bit = 0;
            for (; bit < SIEVE_LINE_BITS; bit++) {
                if (!left[bit]) continue;
                if (!by_first_bit[bit]) {
                    by_first_bit[bit] = left;
                    break;
                }
                left ^= *by_first_bit[bit];
            }
            if (bit == SIEVE_LINE_BITS && left[SIEVE_LINE_BITS]) return q - 1;
        }
    return SIEVE_XORSAT_MAX_Q;
}

TEST(XorsatSolver, FindsTheLargestQAndMissesNoKey) {
    XorsatSolver solver;
    XorsatSolver plain(XorsatSolver::Code::plain);
    int less = 0;
    for (const std::size_t count :
         {1U, 2U, 7U, 14U, 16U, 22U, 31U, 40U, 55U, 56U, 64U, 119U, 120U, 250U, 500U})
        for (std::uint64_t seed = 0; seed < (count < 50 ? 10 : 2); seed++) {
            const auto keys = random_hashes(count, 1000 * count + seed);
            sieve_line line{};
            line.word[0] = 0xa500; // exports, which stay
            const std::uint32_t q = solver.solve(keys, line);
            ASSERT_EQ(line.word[0] & 0xffff, 0xa500 | q);
            for (const sieve_hash& key : keys) ASSERT_TRUE(sieve_xorsat_test(&line, key)) << count << " keys";
            const std::uint32_t largest = largest_q(keys);
            ASSERT_LE(q, largest);
            less += q < largest ? 1 : 0;

            sieve_line again{};
            again.word[0] = 0xa500;
            ASSERT_EQ(plain.solve(keys, again), q);
            ASSERT_EQ(std::memcmp(&again, &line, sizeof(line)), 0) << "other bits by other code";
        }
    EXPECT_LE(less, 1);
}

TEST(XorsatSolver, TakesWhateverItIsGiven) {
    XorsatSolver solver;
    sieve_line line{};
    EXPECT_EQ(solver.solve({}, line), std::uint32_t{SIEVE_XORSAT_MAX_Q});

    // Two keys that differ in the fingerprint's third bit only.
    std::vector<sieve_hash> keys = random_hashes(1, 1);
    keys.push_back({keys[0].locate ^ (std::uint64_t{1} << 34), keys[0].test});
    std::uint32_t q = solver.solve(keys, line);
    EXPECT_EQ(q, largest_q(keys));
    EXPECT_EQ(sieve_xorsat_bits(q, keys[0].test), 2U);
    for (const sieve_hash& key : keys) EXPECT_TRUE(sieve_xorsat_test(&line, key));

    // The same in the first bit, in a full line.
    keys = random_hashes(31, 2);
    for (std::size_t i = 0; i < 31; i++)
        keys.push_back({keys[i].locate ^ (std::uint64_t{1} << 32), keys[i].test});
    q = solver.solve(keys, line);
    EXPECT_EQ(q, largest_q(keys));
    for (const sieve_hash& key : keys) EXPECT_TRUE(sieve_xorsat_test(&line, key));

    // A key again and again, and more keys than can be solved.
    keys.assign(400, random_hashes(1, 3)[0]);
    EXPECT_GE(solver.solve(keys, line), 8U);
    EXPECT_TRUE(sieve_xorsat_test(&line, keys[0]));
    for (const std::size_t count : {XorsatSolver::most_keys, XorsatSolver::most_keys + 1}) {
        keys = random_hashes(count, 4);
        q = solver.solve(keys, line);
        EXPECT_LT(q, 8U);
        for (const sieve_hash& key : keys) ASSERT_TRUE(sieve_xorsat_test(&line, key));
    }
    EXPECT_EQ(q, 0U);
}

} // namespace
} // namespace sieve
