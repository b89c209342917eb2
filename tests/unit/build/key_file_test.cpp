// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/key_file.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace sieve {
namespace {

// Random keys of the fields; `share_of_ipv6` of the addresses are of IPv6.
KeySet random_keys(std::uint32_t fields, std::size_t count, double share_of_ipv6, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::bernoulli_distribution ipv6(share_of_ipv6);
    KeySet keys(fields);
    for (std::size_t i = 0; i < count; i++) {
        sieve_key key{};
        for (int word = 0; word < 4; word += 2) {
            const bool longer = ipv6(random);
            key.word[word] = longer ? random() : 0;
            key.word[word + 1] = longer ? random() : sieve_v4_mapped(static_cast<std::uint32_t>(random()));
        }
        key.word[4] = random();
        keys.add(key);
    }
    return keys;
}

void collect(const KeySet& keys, std::vector<std::uint64_t>& words) {
    for (std::size_t i = 0; i < keys.size(); i++) {
        const sieve_key key = keys.at(i);
        words.insert(words.end(), std::begin(key.word), std::end(key.word));
    }
}

// All keys come back in their order, whatever their fields, families and numbers.
TEST(KeptKeys, GivesBackWhatItTook) {
    std::uint64_t seed = 0;
    for (const std::uint32_t fields :
         {std::uint32_t{SIEVE_FIELD_SRC}, std::uint32_t{SIEVE_FIELD_DST}, std::uint32_t{SIEVE_FIELD_DPORT},
          std::uint32_t{SIEVE_FIELD_SRC | SIEVE_FIELD_DST}, std::uint32_t{SIEVE_FIELD_ALL}})
        for (const double share_of_ipv6 : {0.0, 1.0, 1e-5}) {
            auto file = KeyFile::create(fields);
            ASSERT_TRUE(file) << file.error().message;
            std::vector<std::uint64_t> expected;
            for (const std::size_t count : {0U, 1U, 16'384U, 50'000U, 3U}) {
                const KeySet keys = random_keys(fields, count, share_of_ipv6, ++seed);
                ASSERT_TRUE(file->append(keys));
                collect(keys, expected);
            }
            for (int times = 0; times < 2; times++) {
                std::vector<std::uint64_t> found;
                ASSERT_TRUE(file->for_each([&](const KeySet& keys) -> Status {
                    EXPECT_EQ(keys.fields(), fields);
                    collect(keys, found);
                    return {};
                }));
                EXPECT_TRUE(found == expected) << fields << ", IPv6 " << share_of_ipv6;
            }
        }
}

TEST(KeptKeys, EndsWithTheVisitorsError) {
    auto file = KeyFile::create(SIEVE_FIELD_SRC);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append(random_keys(SIEVE_FIELD_SRC, 40'000, 0, 1)));
    int visits = 0;
    const Status visited = file->for_each([&](const KeySet&) -> Status {
        visits++;
        return bad_input("enough");
    });
    ASSERT_FALSE(visited);
    EXPECT_EQ(visited.error().message, "enough");
    EXPECT_EQ(visits, 1);
}

} // namespace
} // namespace sieve
