// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/keys/key_set.hpp"

#include <iterator>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/keys/key_order.hpp"

namespace sieve {
namespace {

sieve_key source(bool ipv6, std::mt19937_64& random) {
    sieve_key key{};
    key.word[0] = ipv6 ? random() : 0;
    key.word[1] = ipv6 ? random() : sieve_v4_mapped(static_cast<std::uint32_t>(random()));
    return key;
}

// A list that begins with `ipv4` IPv4 addresses and goes on with both families.
std::vector<sieve_key> sources(std::size_t ipv4, std::size_t others, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<sieve_key> keys;
    for (std::size_t i = 0; i < ipv4; i++) keys.push_back(source(false, random));
    for (std::size_t i = 0; i < others; i++) keys.push_back(source(i % 3 == 0, random));
    return keys;
}

KeySet set_of(const std::vector<sieve_key>& keys) {
    KeySet set(SIEVE_FIELD_SRC);
    for (const sieve_key& key : keys) set.add(key);
    return set;
}

void expect(const KeySet& set, const std::vector<sieve_key>& keys) {
    ASSERT_EQ(set.size(), keys.size());
    EXPECT_EQ(set.empty(), keys.empty());
    for (std::size_t i = 0; i < keys.size(); i++) EXPECT_TRUE(same_key(set.at(i), keys[i])) << i;
    for (const std::size_t first : {std::size_t{0}, keys.size() / 3}) {
        std::size_t next = first;
        set.for_each(first, keys.size(),
                     [&](const sieve_key& key) { EXPECT_TRUE(same_key(key, keys[next++])) << next; });
        EXPECT_EQ(next, keys.size());
    }
}

// Keys come back in their order, wherever the first address that is not of IPv4 stands.
TEST(KeySets, KeepTheirOrder) {
    for (const std::size_t ipv4 : {0U, 1U, 7U})
        for (const std::size_t others : {0U, 1U, 8U}) {
            const std::vector<sieve_key> keys = sources(ipv4, others, ipv4 + others);
            expect(set_of(keys), keys);
        }
}

TEST(KeySets, AppendOneAnother) {
    for (const std::size_t ipv4 : {0U, 5U})
        for (const std::size_t others : {0U, 4U})
            for (const std::size_t more_ipv4 : {0U, 3U})
                for (const std::size_t more_others : {0U, 2U}) {
                    std::vector<sieve_key> keys = sources(ipv4, others, 1);
                    const std::vector<sieve_key> more = sources(more_ipv4, more_others, 2);
                    KeySet set = set_of(keys);
                    set.append(set_of(more));
                    set.add_ipv4(0x01020304);
                    keys.insert(keys.end(), more.begin(), more.end());
                    sieve_key last{};
                    last.word[1] = sieve_v4_mapped(0x01020304);
                    keys.push_back(last);
                    expect(set, keys);
                    set.restart();
                    expect(set, {});
                    set.add(more.empty() ? last : more.front());
                    expect(set, {more.empty() ? last : more.front()});
                }
}

// An IPv4 address takes 4 bytes in a list of such, and no other key more than its words.
TEST(KeySets, StoreIPv4AddressesInFourBytes) {
    const KeySet set = set_of(sources(5, 4, 3));
    EXPECT_EQ(set.addresses().size(), 5U);
    EXPECT_EQ(set.words().size(), 2U * 4);
    KeySet both(SIEVE_FIELD_SRC | SIEVE_FIELD_DST);
    both.add(sources(1, 0, 4).front());
    EXPECT_EQ(both.addresses().size(), 0U);
    EXPECT_EQ(both.words().size(), 4U);
    // The field's own word decides, whatever stands in the others.
    KeySet destinations(SIEVE_FIELD_DST);
    sieve_key key{};
    key.word[0] = 7;
    key.word[3] = sieve_v4_mapped(9);
    destinations.add(key);
    EXPECT_EQ(destinations.addresses().size(), 1U);
    EXPECT_EQ(destinations.at(0).word[3], sieve_v4_mapped(9));
    EXPECT_EQ(destinations.at(0).word[0], 0U);
}

} // namespace
} // namespace sieve
