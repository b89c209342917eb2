// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/placement/distinct_hashes.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {
namespace {

constexpr std::array<__u64, SIEVE_HASH_KEY_WORDS> hash_key = {11, 22, 33, 44, 55, 66};

// Draws addresses from a space of half as many, so that most occur more than once.
KeySet crowded_keys(std::size_t count) {
    std::mt19937_64 random(count);
    KeySet keys(SIEVE_FIELD_SRC);
    for (std::size_t i = 0; i < count; i++) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(static_cast<std::uint32_t>(random() % (count / 2 + 1)));
        keys.add(key);
    }
    return keys;
}

// Compares with hashing one by one, std::sort and std::unique, for any number of threads.
TEST(DistinctHashes, AreTheSortedHashesEachOnce) {
    for (const std::size_t count : {0U, 1U, 2U, 100U, 5'000U, 300'000U}) {
        const KeySet keys = crowded_keys(count);
        std::vector<sieve_hash> expected;
        for (std::size_t i = 0; i < count; i++) {
            const sieve_key key = keys.at(i);
            expected.push_back(sieve_hash_key(&key, hash_key.data(), SIEVE_FIELD_SRC));
        }
        const std::vector<sieve_hash> unsorted = expected;
        const auto same = [](const sieve_hash& a, const sieve_hash& b) {
            return a.locate == b.locate && a.test == b.test;
        };
        std::sort(expected.begin(), expected.end(), hash_order);
        expected.erase(std::unique(expected.begin(), expected.end(), same), expected.end());
        for (const std::size_t threads : {1U, 4U}) {
            const ThreadLimit limit(threads);
            const auto of_keys = distinct_hashes(keys, hash_key.data());
            EXPECT_TRUE(std::equal(of_keys.begin(), of_keys.end(), expected.begin(), expected.end(), same));
            HugeArray<sieve_hash> copy(count);
            std::copy(unsorted.begin(), unsorted.end(), copy.begin());
            const auto of_hashes = distinct_hashes(std::move(copy));
            EXPECT_TRUE(
                std::equal(of_hashes.begin(), of_hashes.end(), expected.begin(), expected.end(), same));
        }
    }
}

} // namespace
} // namespace sieve
