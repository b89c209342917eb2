// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/prefixes/prefix_expansion.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <sieve/prefix.h>

#include "unit/messages.hpp"

namespace sieve {
namespace {

AddressRange v4(std::uint32_t address, std::uint32_t length) {
    const std::uint64_t host = length == 0 ? 0xffffffffULL : (1ULL << (32 - length)) - 1;
    return {address_number(0, sieve_v4_mapped(address)), address_number(0, sieve_v4_mapped(address)) + host};
}

AddressRange v6(std::uint64_t upper, std::uint32_t length) {
    const uint128 first = address_number(upper, 0);
    return {first, first + (length == 0 ? ~uint128{0} : (uint128{1} << (128 - length)) - 1)};
}

// The upper `length` (0 to 64) bits of a word, the others zero.
std::uint64_t cut(std::uint64_t word, std::uint32_t length) {
    return length == 0 ? 0 : word >> (64 - length) << (64 - length);
}

using Prefix = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;

// In order.
std::vector<Prefix> expanded(const PrefixPlan& plan) {
    std::vector<Prefix> prefixes;
    std::size_t uncut = 0; // prefixes with bits behind the length
    expand_prefixes(plan, [&](std::uint64_t upper, std::uint64_t lower, std::uint32_t length) {
        if (upper != cut(upper, std::min(length, 64U)) || lower != cut(lower, length < 64 ? 0 : length - 64))
            uncut++;
        prefixes.emplace_back(upper, lower, length);
    });
    EXPECT_EQ(uncut, 0U);
    EXPECT_EQ(prefixes.size(), plan.keys);
    std::sort(prefixes.begin(), prefixes.end());
    EXPECT_EQ(std::adjacent_find(prefixes.begin(), prefixes.end()), prefixes.end()) << "a prefix twice";
    return prefixes;
}

// What the packet path does: cut the address to each length of its family.
bool probed(const PrefixPlan& plan, const std::vector<Prefix>& prefixes, uint128 address) {
    const auto upper = static_cast<std::uint64_t>(address >> 64);
    const auto lower = static_cast<std::uint64_t>(address);
    const int family = sieve_family(upper, lower);
    for (int i = 0; i < plan.probes.count[family]; i++) {
        const std::uint32_t length = plan.probes.length[family][i];
        const Prefix asked{cut(upper, std::min(length, 64U)), cut(lower, length < 64 ? 0 : length - 64),
                           length};
        if (std::binary_search(prefixes.begin(), prefixes.end(), asked)) return true;
    }
    return false;
}

// Random ranges of both families. The probes answer exactly as a scan of the ranges does: inside, outside and
// at every edge, for any number of lengths.
TEST(PrefixExpansion, AnswersLikeTheRangesThemselves) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 60; round++) {
        std::vector<AddressRange> ranges;
        for (int i = 0; i < 40; i++) {
            const auto length = static_cast<std::uint32_t>(18 + random() % 15);
            const auto address = static_cast<std::uint32_t>(random()) &
                                 ~static_cast<std::uint32_t>((1ULL << (32 - length)) - 1);
            ranges.push_back(v4(address, length));
            const auto length6 = static_cast<std::uint32_t>(28 + random() % 37);
            ranges.push_back(v6((0x2000ULL << 48 | random() % (1ULL << 40) << 8) &
                                    (~0ULL << (64 - std::min(length6, 63U))),
                                length6));
            const auto first =
                address_number(0, sieve_v4_mapped(static_cast<std::uint32_t>(random() % 0xfffff000)));
            ranges.push_back({first, first + random() % 1000});
        }
        PrefixLimits limits;
        limits.max_probes = 1 + static_cast<std::uint32_t>(round % 8);
        limits.max_keys = 50'000'000;
        auto plan = plan_prefixes(ranges, limits);
        if (!plan) continue; // too many keys for so few lengths; other rounds have more
        if (plan->keys > 2'000'000) continue;
        EXPECT_LE(plan->probes.count[0], limits.max_probes);
        EXPECT_LE(plan->probes.count[1], limits.max_probes);
        const auto prefixes = expanded(*plan);
        const auto contained = [&](uint128 a) {
            return std::any_of(ranges.begin(), ranges.end(),
                               [a](const auto& r) { return a >= r.first && a <= r.last; });
        };
        std::vector<uint128> asked;
        for (const auto& range : ranges) {
            asked.insert(asked.end(), {range.first, range.last, range.first - 1, range.last + 1});
            asked.push_back(range.first +
                            random() % (static_cast<std::uint64_t>(range.last - range.first) | 1));
        }
        for (int i = 0; i < 500; i++)
            asked.push_back(address_number(0, sieve_v4_mapped(static_cast<std::uint32_t>(random()))));
        for (const uint128 address : asked) {
            EXPECT_EQ(probed(*plan, prefixes, address), contained(address));
            EXPECT_EQ(is_member(*plan, address), contained(address));
        }
    }
}

TEST(PrefixExpansion, AggregatesFirst) {
    // Two halves, a prefix inside a prefix, a duplicate and a neighbour make one /23.
    const auto plan = plan_prefixes(
        {v4(0x0a000000, 25), v4(0x0a000080, 25), v4(0x0a000010, 28), v4(0x0a000000, 25), v4(0x0a000100, 24)},
        {});
    ASSERT_TRUE(plan);
    ASSERT_EQ(plan->members[0].size(), 1U);
    EXPECT_EQ(plan->members[0][0], v4(0x0a000000, 23));
    EXPECT_EQ(plan->keys, 1U);
    EXPECT_EQ(plan->probes.count[0], 1);
    EXPECT_EQ(plan->probes.length[0][0], 96 + 23);
    EXPECT_DOUBLE_EQ(plan->covered[0], 512.0 / 4294967296.0);
}

// The choice is optimal: a brute-force search compares it with every choice of three lengths.
TEST(PrefixExpansion, ChoosesTheBestLengths) {
    std::mt19937_64 random(2);
    for (int round = 0; round < 20; round++) {
        // Spread over distant /14 blocks so that nothing aggregates, with enough short prefixes to make one
        // length expensive.
        std::vector<AddressRange> ranges;
        std::array<double, 33> counts{};
        for (std::uint32_t i = 0; i < 60; i++) {
            const auto length = static_cast<std::uint32_t>(14 + random() % 17);
            ranges.push_back(v4(i << 20, std::max(length, 14U)));
            counts[length]++;
        }
        const auto plan = plan_prefixes(ranges, {.max_probes = 3, .max_keys = 1ULL << 40});
        ASSERT_TRUE(plan);
        std::uint32_t longest = 32;
        while (counts[longest] == 0) longest--;
        double best = 1e300;
        for (std::uint32_t a = 0; a < longest; a++)
            for (std::uint32_t b = a + 1; b < longest; b++) {
                double keys = 0;
                for (std::uint32_t l = 0; l <= longest; l++)
                    keys += counts[l] * std::exp2((l <= a ? a : l <= b ? b : longest) - l);
                best = std::min(best, keys);
            }
        if (plan->probes.count[0] == 3) {
            EXPECT_EQ(static_cast<double>(plan->keys), best);
        } else {
            EXPECT_LE(plan->keys, cheap_keys) << "fewer lengths only where that is cheap";
        }
    }
}

TEST(PrefixExpansion, TakesTheWholeOfAFamily) {
    const auto everything = plan_prefixes({v4(0, 0), v6(0, 0)}, {});
    ASSERT_TRUE(everything) << everything.error().message;
    const auto prefixes = expanded(*everything);
    for (const uint128 address :
         {address_number(0, sieve_v4_mapped(0)), address_number(0, sieve_v4_mapped(~0U)), uint128{0},
          ~uint128{0}, all_ipv4.first - 1, all_ipv4.last + 1})
        EXPECT_TRUE(probed(*everything, prefixes, address));
    // All of IPv6 does not include IPv4.
    const auto six = plan_prefixes({v6(0, 0)}, {});
    ASSERT_TRUE(six) << six.error().message;
    EXPECT_EQ(six->probes.count[0], 0);
    EXPECT_FALSE(is_member(*six, address_number(0, sieve_v4_mapped(0x08080808))));
}

TEST(PrefixExpansion, SaysWithNumbersWhatDoesNotFit) {
    std::vector<AddressRange> ranges;
    for (std::uint32_t i = 0; i < 100; i++) ranges.push_back(v4(i << 24, 9));
    ranges.push_back(v4(0xf0000001, 32));
    expect_error(plan_prefixes(ranges, {.max_probes = 1, .max_keys = 1'000'000}), ErrorKind::bad_input);
    EXPECT_TRUE(plan_prefixes(ranges, {.max_probes = 2, .max_keys = 1'000'000}));
    EXPECT_FALSE(plan_prefixes(ranges, {.max_probes = 0}));
    EXPECT_FALSE(plan_prefixes(ranges, {.max_probes = 9}));
}

} // namespace
} // namespace sieve
