// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tables of kind `exact` that give each key a value, against a map of the list, and the ends of keys.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <sieve/exact_table.h>

#include "libsieve/filters/kinds/exact/exact_ends.hpp"
#include "libsieve/filters/kinds/exact/exact_geometry.hpp"
#include "libsieve/filters/kinds/exact/exact_ipv6.hpp"
#include "libsieve/filters/kinds/exact/exact_kind.hpp"
#include "libsieve/filters/kinds/exact/exact_lanes.hpp"
#include "libsieve/filters/kinds/exact/exact_listing.hpp"
#include "libsieve/filters/kinds/exact/exact_table.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/system/clock.hpp"
#include "model/exact_model.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

using exact::Values;
using Valued = std::map<uint128, std::uint32_t>;

constexpr std::uint64_t second = 1'000'000'000;

uint128 v4(std::uint64_t address) {
    return sieve_v4_mapped(static_cast<std::uint32_t>(address));
}

std::uint64_t upper_of(uint128 address) {
    return static_cast<std::uint64_t>(address >> 64);
}
std::uint64_t lower_of(uint128 address) {
    return static_cast<std::uint64_t>(address);
}

sieve_key key_of(uint128 address) {
    return {{upper_of(address), lower_of(address), 0, 0, 0}};
}

struct Built {
    exact::Table table;
    Values values;

    [[nodiscard]] const sieve_lookup& lookup() const {
        return reinterpret_cast<const sieve_lookup&>(table.geometry);
    }
    [[nodiscard]] std::span<const sieve_line> lines() const {
        return {table.lines.data(), table.lines.size()};
    }
    [[nodiscard]] exact::Parts parts() const { return exact::Parts::of(lookup(), lines()); }
    [[nodiscard]] std::optional<std::uint32_t> value(uint128 address) const {
        return exact::value_in(parts(), upper_of(address), lower_of(address));
    }
    [[nodiscard]] bool holds(uint128 address) const {
        return exact_kind.holds_key(lookup(), key_of(address), lines());
    }
    [[nodiscard]] model::ExactImage model() const {
        std::vector<sieve_line> image(SIEVE_FIRST_LINE + lines().size());
        std::memcpy(image.data(), &lookup(), sizeof(sieve_line));
        std::copy(lines().begin(), lines().end(), image.begin() + SIEVE_FIRST_LINE);
        return model::ExactImage(
            {reinterpret_cast<const unsigned char*>(image.data()), image.size() * sizeof(sieve_line)});
    }
};

Built build(const Valued& entries, const Values& values, std::uint64_t seed = 1) {
    std::vector<std::uint32_t> four;
    std::vector<uint128> six;
    std::vector<std::uint16_t> four_values;
    std::vector<std::uint16_t> six_values;
    for (const auto& [address, value] : entries)
        if (is_ipv4(address)) {
            four.push_back(static_cast<std::uint32_t>(address));
            four_values.push_back(static_cast<std::uint16_t>(value));
        } else {
            six.push_back(address);
            six_values.push_back(static_cast<std::uint16_t>(value));
        }
    std::mt19937_64 random(seed);
    std::array<__u64, SIEVE_HASH_KEY_WORDS> secret{};
    for (auto& word : secret) word = random();
    auto table =
        exact::build_table({.ipv4 = four, .ipv6 = six, .ipv4_values = four_values, .ipv6_values = six_values},
                           SIEVE_FIELD_SRC, secret, values);
    if (!table) {
        ADD_FAILURE() << table.error().message;
        std::abort();
    }
    return {std::move(*table), values};
}

Values of_sets(std::uint32_t bits) {
    return {.bits = bits, .meaning = SIEVE_EXACT_SETS, .sets = 1U << bits};
}

/// Ends that have not come: all but 0.
Values of_ends(std::uint32_t bits) {
    return {.bits = bits, .meaning = SIEVE_EXACT_ENDS, .unit = 30, .base = program_now() + 1000 * second};
}

Valued random_entries(std::size_t four, std::size_t six, std::uint32_t bits, std::mt19937_64& random) {
    Valued entries;
    const auto value = [&] { return static_cast<std::uint32_t>(random() & ((1U << bits) - 1)); };
    while (entries.size() < four) entries[v4(random())] = value();
    while (entries.size() < four + six) entries[address_number(0x20010db800000000, random())] = value();
    return entries;
}

/// Each value is found, by lookups, by the listing and by the model of the format; strangers have none.
void answers_like(const Built& built, const Valued& entries, std::mt19937_64& random) {
    ASSERT_EQ(geometry_fault(built.lookup()), "");
    ASSERT_EQ(exact::parts_fault(built.parts()), "");
    const model::ExactImage model = built.model();
    const auto ask = [&](uint128 address) {
        const auto member = entries.find(address);
        const auto value = built.value(address);
        ASSERT_EQ(value.has_value(), member != entries.end());
        if (value) {
            ASSERT_EQ(*value, member->second);
        }
        ASSERT_EQ(model.value(upper_of(address), lower_of(address)), value);
        ASSERT_EQ(built.holds(address),
                  value.value_or(0) > 0 || (value && built.values.meaning == SIEVE_EXACT_SETS));
    };
    std::size_t left = 20'000;
    for (const auto& [address, value] : entries) {
        if (left-- == 0) break;
        ask(address);
        ask(address ^ uint128{1} << (random() % 32));
    }
    for (int i = 0; i < 2'000; i++) {
        ask(v4(random()));
        ask(address_number(0x20010db800000000, random()));
    }
    for (const uint128 edge : {v4(0), v4(0xffffffff), uint128{0}, ~uint128{0}}) ask(edge);

    const auto listed = exact::entries_of(built.parts());
    ASSERT_TRUE(listed) << listed.error().message;
    Valued own;
    ASSERT_EQ(listed->ipv4.size(), listed->ipv4_values.size());
    ASSERT_EQ(listed->ipv6.size(), listed->ipv6_values.size());
    for (std::size_t i = 0; i < listed->ipv4.size(); i++) own[v4(listed->ipv4[i])] = listed->ipv4_values[i];
    for (std::size_t i = 0; i < listed->ipv6.size(); i++) own[listed->ipv6[i]] = listed->ipv6_values[i];
    ASSERT_EQ(own, entries);
    const auto sum = exact_kind.add_up(built.lookup(), built.lines());
    ASSERT_TRUE(sum) << sum.error().message;
    EXPECT_EQ(sum->keys, entries.size());
    EXPECT_EQ(sum->sum, built.table.sum);
}

class ExactValues : public testing::TestWithParam<std::tuple<std::uint32_t, std::size_t>> {};

TEST_P(ExactValues, AreThoseOfTheList) {
    const auto [bits, count] = GetParam();
    std::mt19937_64 random(bits + count);
    const Valued entries = random_entries(count, count / 4, bits, random);
    const Built built = build(entries, bits < exact::least_bits_of_ends ? of_sets(bits) : of_ends(bits));
    EXPECT_EQ(built.table.lines.size(), exact::table_lines(count, count / 4, bits)) << "it had to grow";
    answers_like(built, entries, random);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ExactValues,
                         testing::Combine(testing::Values(1, 3, 4, 6, 8, 11, 16),
                                          testing::Values(0, 1, 3, 14, 200, 5'000, 100'000)));

/// Large tables are filled by shards.
TEST(ExactValue, OfMillionsOfKeysOnAnyNumberOfThreads) {
    std::mt19937_64 random(2);
    const auto value_of = [](std::uint32_t address) {
        return static_cast<std::uint16_t>(sieve_mix(address) & 15);
    };
    std::vector<std::uint32_t> list(3'100'000);
    for (std::uint32_t& address : list) address = static_cast<std::uint32_t>(random());
    std::vector<std::uint16_t> list_values;
    for (const std::uint32_t address : list) list_values.push_back(value_of(address));
    const auto with = [&](std::size_t threads) {
        const ThreadLimit limit(threads);
        const std::array<__u64, SIEVE_HASH_KEY_WORDS> secret{};
        auto table = exact::build_table({.ipv4 = list, .ipv4_values = list_values}, SIEVE_FIELD_SRC, secret,
                                        of_sets(4));
        if (!table) std::abort();
        return Built{std::move(*table), of_sets(4)};
    };
    const Built one = with(1);
    ASSERT_GT(one.table.geometry.words, 1U << 20) << "no shards";
    for (const std::uint32_t address : list) ASSERT_EQ(one.value(v4(address)), value_of(address));
    const Built five = with(5);
    ASSERT_EQ(five.table.lines.size(), one.table.lines.size());
    EXPECT_EQ(std::memcmp(five.table.lines.data(), one.table.lines.data(), one.lines().size_bytes()), 0);
}

/// A lane is found wherever it is, whatever is in the others, and so is its value. The oracle takes the words
/// apart.
TEST(ExactValue, OfEachLaneByItself) {
    std::mt19937_64 random(3);
    std::size_t shapes = 0;
    for (const exact::Shape& shape : exact::shapes())
        for (std::uint32_t bits = 1; bits <= 16 && bits + 3 <= shape.width; bits++) {
            shapes++;
            const sieve_exact exact = exact::geometry_of(shape, exact::lines_for(shape, 0, bits), bits);
            ASSERT_EQ(exact::fault([&] {
                          sieve_exact whole = exact;
                          exact::draw_secrets(whole, random);
                          whole.fields = SIEVE_FIELD_SRC;
                          whole.lines = sieve_exact_ipv6_line(&exact);
                          return whole;
                      }()),
                      "");
            const exact::Lanes lanes(exact);
            for (int i = 0; i < 2'000; i++) {
                const auto rest = static_cast<std::uint32_t>(random() % exact.range);
                // No key is in a word twice.
                const auto any_word = [&](std::uint64_t wanted) {
                    std::uint64_t word = lanes.empty_word();
                    const std::uint64_t with = random() % (2 * shape.lanes);
                    for (std::uint32_t lane = 0; lane < lanes.count(); lane++) {
                        std::uint64_t entry = random() % (2 * std::uint64_t{exact.range});
                        if (random() % 4 == 0) entry = wanted ^ 1U;
                        if (entry == wanted || entry >= 2 * std::uint64_t{exact.range})
                            entry = wanted == 0 ? 1 : 0;
                        if (lane == with) entry = wanted;
                        std::uint64_t content = entry << bits | (random() & ((1U << bits) - 1));
                        if (lane != with && random() % 3 == 0) content = lanes.none();
                        word = lanes.with(word, lane, content);
                    }
                    return word;
                };
                const std::uint64_t first = any_word(rest);
                const std::uint64_t second_word = any_word(std::uint64_t{exact.range} + rest);
                const sieve_exact_match match = sieve_exact_find(&exact, first, second_word, rest);
                const auto expect = [&](std::uint64_t word, std::uint64_t wanted, std::uint64_t found) {
                    std::uint64_t head = 0;
                    std::uint64_t value = 0;
                    for (std::uint32_t lane = 0; lane < shape.lanes; lane++) {
                        const std::uint64_t content =
                            word >> (lane * shape.width) & ((std::uint64_t{1} << shape.width) - 1);
                        if (content >> bits != wanted) continue;
                        head = std::uint64_t{1} << (lane * shape.width + shape.width - 1);
                        value = content & ((1U << bits) - 1);
                    }
                    ASSERT_EQ(found, head)
                        << fmt::format("{:x} {:x}, {} of {}", word, wanted, bits, shape.width);
                    if (head != 0) {
                        ASSERT_EQ(sieve_exact_lane_value(&exact, word, head), value);
                    }
                };
                expect(first, rest, match.first);
                expect(second_word, std::uint64_t{exact.range} + rest, match.second);
            }
        }
    EXPECT_GT(shapes, 60U);
}

TEST(ExactValue, OfARepeatedAddressIsTheFirstOne) {
    const std::vector<std::uint32_t> four = {7, 8, 7};
    const std::vector<std::uint16_t> values = {1, 2, 3};
    const std::vector<uint128> six = {address_number(0x20010db800000000, 1),
                                      address_number(0x20010db800000000, 1)};
    const std::vector<std::uint16_t> six_values = {5, 6};
    const std::array<__u64, SIEVE_HASH_KEY_WORDS> secret{};
    auto table =
        exact::build_table({.ipv4 = four, .ipv6 = six, .ipv4_values = values, .ipv6_values = six_values},
                           SIEVE_FIELD_SRC, secret, of_sets(4));
    ASSERT_TRUE(table);
    EXPECT_EQ(table->keys, 3U);
    const Built built{std::move(*table), of_sets(4)};
    EXPECT_EQ(built.value(v4(7)), 1U);
    EXPECT_EQ(built.value(v4(8)), 2U);
    EXPECT_EQ(built.value(six[0]), 5U);
}

/// What values cost: docs/exact.md shows these sizes.
TEST(ExactValue, TakesTheBitsOfItsShape) {
    const auto bits_a_key = [](std::uint64_t keys, std::uint32_t bits) {
        return static_cast<double>(exact::lines_for(exact::best_shape(keys, bits), keys, bits)) *
               SIEVE_LINE_BITS / static_cast<double>(keys);
    };
    const struct {
        std::uint64_t keys;
        double four;
        std::uint32_t ends;
        double with_ends;
    } cases[] = {{10'000, 37.3, 11, 37.3},
                 {100'000, 37.2, 14, 37.2},
                 {1'000'000, 22.6, 6, 22.6},
                 {10'000'000, 16.6, 9, 22.6}};
    for (const auto& c : cases) {
        EXPECT_NEAR(bits_a_key(c.keys, 4), c.four, 0.1) << c.keys;
        EXPECT_EQ(exact::bits_for_ends(c.keys), c.ends) << c.keys;
        EXPECT_NEAR(bits_a_key(c.keys, c.ends), c.with_ends, 0.1) << c.keys;
    }
}

/// What a table with values may be wrong in.
class ExactValueContent : public testing::Test {
  protected:
    void refused() {
        expect_error(exact_kind.add_up(built.lookup(), built.lines()), ErrorKind::bad_input);
        built = build(entries, values);
    }
    sieve_exact_ipv6& line() { return reinterpret_cast<sieve_exact_ipv6&>(built.table.lines[0]); }
    std::span<sieve_line> ipv6_values() {
        return std::span(built.table.lines.data(), built.table.lines.size())
            .subspan(sieve_exact_ipv6_line(&built.table.geometry) + line().lines);
    }
    std::pair<std::uint32_t, int> find_ipv6(bool with_address) {
        for (std::uint32_t at = 0;; at++)
            for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++)
                if ((exact::address_at(built.parts().ipv6_lines()[at], place) != exact::no_address) ==
                    with_address)
                    return {at, place};
    }

    std::mt19937_64 random{4};
    Values values{.bits = 11, .meaning = SIEVE_EXACT_ENDS, .unit = 30, .base = 5 * second};
    Valued entries = random_entries(1'000, 36, 11, random);
    Built built = build(entries, values);
};

TEST_F(ExactValueContent, IsAcceptedAsBuilt) {
    EXPECT_TRUE(exact_kind.add_up(built.lookup(), built.lines()));
    const Values own = built.parts().values();
    EXPECT_EQ(own.bits, values.bits);
    EXPECT_EQ(own.meaning, values.meaning);
    EXPECT_EQ(own.unit, values.unit);
    EXPECT_EQ(own.base, values.base);
}

TEST_F(ExactValueContent, WithAFaultIsRefused) {
    for (const int meaning : {0, 3, 255}) {
        line().meaning = static_cast<__u8>(meaning);
        refused();
    }
    line().meaning = SIEVE_EXACT_SETS;
    refused();
    const auto of_sets = [this](int sets) {
        line().meaning = SIEVE_EXACT_SETS;
        line().unit = 0;
        line().base = 0;
        line().sets = static_cast<__u8>(sets);
    };
    of_sets(0);
    refused();
    of_sets(200);
    refused();
    for (const int unit : {0, 19, 51, 255}) {
        line().unit = static_cast<__u8>(unit);
        refused();
    }
    line().reserved0 = 1;
    refused();
    line().lines++;
    refused();

    const auto [free_line, free_place] = find_ipv6(false);
    exact::put_value(ipv6_values(), free_line, free_place, 1);
    refused();
    const auto [used_line, used_place] = find_ipv6(true);
    exact::put_value(ipv6_values(), used_line, used_place, 1U << 11);
    EXPECT_FALSE(exact::entries_of(built.parts()));
    refused();
    line().sets = 1;
    refused();
    ASSERT_NE(line().lines % SIEVE_LINE_WORDS, 0U) << "choose another number of keys";
    ipv6_values().back().word[SIEVE_LINE_WORDS - 1] = 1;
    refused();

    // A lane of all ones but for the value, which is beyond the range.
    const exact::Lanes lanes(built.table.geometry);
    __u64& word = built.table.lines[SIEVE_EXACT_IPV4_LINE].word[0];
    word = lanes.with(word, 0, lanes.none() ^ 1);
    refused();
    // A second copy with another value.
    for (__u64& one : std::span(built.table.lines[SIEVE_EXACT_IPV4_LINE].word, built.table.geometry.words)) {
        const std::uint64_t free = lanes.free(one);
        if (free == 0 || lanes.get(one, 0) == lanes.none()) continue;
        one = lanes.with(one, lanes.lowest(free), lanes.get(one, 0) ^ 1);
        return refused();
    }
    FAIL() << "no word has room for a copy";
}

TEST_F(ExactValueContent, OfAnySortIsSurvived) {
    for (int round = 0; round < 30; round++) {
        std::vector<sieve_line> lines(built.lines().begin(), built.lines().end());
        for (std::size_t at = 1; at < lines.size(); at++)
            if (random() % 4 == 0)
                for (auto& word : lines[at].word) word = random();
        const exact::Parts parts = exact::Parts::of(built.lookup(), lines);
        for (int i = 0; i < 100; i++) {
            (void)exact::value_in(parts, 0, sieve_v4_mapped(static_cast<std::uint32_t>(random())));
            (void)exact::value_in(parts, random(), random());
        }
        EXPECT_FALSE(exact_kind.add_up(built.lookup(), lines));
        EXPECT_FALSE(exact::entries_of(parts));
    }
}

/// The unit of a time, by hand.
TEST(ExactEnds, CountUnitsFromTheBase) {
    sieve_exact exact{};
    exact.value_bits = 8;
    sieve_exact_ipv6 part{};
    part.unit = 30;
    constexpr std::uint64_t unit = std::uint64_t{1} << 30;
    // The last base is 2.5 units before the clock's wrap.
    for (const std::uint64_t base : {std::uint64_t{0}, 1000 * second, std::uint64_t{0} - 5 * unit / 2}) {
        part.base = base;
        const auto at = [&](std::uint64_t since) { return sieve_exact_unit(&exact, &part, base + since); };
        EXPECT_EQ(at(0), 0U);
        EXPECT_EQ(at(unit - 1), 0U);
        EXPECT_EQ(at(unit), 1U);
        EXPECT_EQ(at(2 * unit), 2U);
        EXPECT_EQ(at(3 * unit - 1), 2U);
        EXPECT_EQ(at(3 * unit), 3U);
        EXPECT_EQ(at(253 * unit + unit - 1), 253U);
        // It stops at 2^8 - 2.
        EXPECT_EQ(at(254 * unit), 254U);
        EXPECT_EQ(at(255 * unit), 254U);
        EXPECT_EQ(at(256 * unit), 254U);
        EXPECT_EQ(at(std::uint64_t{1} << 62), 254U);
        // Before the base.
        EXPECT_EQ(at(std::uint64_t{0} - 1), 0U);
        EXPECT_EQ(at(std::uint64_t{0} - 300 * unit), 0U);
    }
    EXPECT_TRUE(sieve_exact_ended(0, 0));
    EXPECT_FALSE(sieve_exact_ended(1, 0));
    EXPECT_TRUE(sieve_exact_ended(1, 1));
    EXPECT_TRUE(sieve_exact_ended(254, 254));
    EXPECT_FALSE(sieve_exact_ended(255, 254)) << "all ones do not end";
}

/// A key is a member as long as was asked for, at most a unit longer, and never again; also where the clock
/// wraps, and once it has passed the last unit.
TEST(ExactEnds, AreThoseAskedForAndNoKeyComesBack) {
    std::mt19937_64 random(5);
    std::size_t without_end = 0;
    for (int round = 0; round < 20'000; round++) {
        const std::uint64_t ipv4 = std::uint64_t{1} << (random() % 25);
        const std::uint64_t longest = 1 + (random() >> (16 + random() % 40));
        const std::uint64_t base = round % 3 == 0 ? std::uint64_t{0} - (random() >> 20) : random() >> 8;
        const Values ends = exact::ends_for(ipv4, longest, base);
        ASSERT_GE(ends.bits, exact::least_bits_of_ends);
        ASSERT_LE(ends.bits, 16U);
        sieve_exact exact{};
        exact.value_bits = static_cast<__u8>(ends.bits);
        sieve_exact_ipv6 part{};
        part.unit = static_cast<__u8>(ends.unit);
        part.base = ends.base;
        const std::uint64_t unit = std::uint64_t{1} << ends.unit;
        const std::uint64_t units = (1U << ends.bits) - 2;
        // Within the first half of all units, every life finds an end.
        const std::uint64_t now = base + random() % (units * unit / 2);
        const std::uint64_t life = 1 + random() % longest;
        const auto value = exact::end_of(ends, now, life);
        ASSERT_TRUE(value) << fmt::format("{} bits, 2^{}, {} of {}", ends.bits, ends.unit, life, longest);
        ASSERT_LT(*value, exact::no_end(ends.bits));
        const auto ended = [&](std::uint64_t at) {
            return sieve_exact_ended(*value, sieve_exact_unit(&exact, &part, at)) != 0;
        };
        ASSERT_FALSE(ended(now));
        ASSERT_FALSE(ended(now + life - 1));
        ASSERT_TRUE(ended(now + life + unit));
        const auto left = exact::left_of(ends, *value, now);
        ASSERT_TRUE(left);
        ASSERT_GE(*left, life);
        ASSERT_LT(*left, life + unit);
        ASSERT_FALSE(ended(now + *left - 1));
        ASSERT_TRUE(ended(now + *left));
        ASSERT_EQ(exact::left_of(ends, *value, now + *left), 0U);
        for (int i = 0; i < 20; i++)
            ASSERT_TRUE(ended(now + *left + (random() >> (2 + random() % 62)))) << "it came back to life";
        ASSERT_FALSE(exact::left_of(ends, exact::no_end(ends.bits), now));
        // Past the last unit, no end can be stated any more.
        ASSERT_FALSE(exact::end_of(ends, base + units * unit + 1, 1));
        without_end += exact::end_of(ends, now, units * unit) ? 0 : 1;
    }
    EXPECT_GT(without_end, 0U);
}

/// In another table's units, no end is earlier, and none more than one of its units later.
TEST(ExactEnds, AreTranslated) {
    std::mt19937_64 random(6);
    for (int round = 0; round < 20'000; round++) {
        const std::uint64_t base = random() >> 8;
        const Values from = exact::ends_for(1'000, 1 + random() % (1'000'000 * second), base);
        const std::uint64_t moved = base + random() % (std::uint64_t{100} << from.unit);
        const Values to = exact::ends_for(1'000'000, 2'000'000 * second, moved);
        const auto value = static_cast<std::uint32_t>(random() % exact::no_end(from.bits));
        const auto other = exact::value_of_end(to, exact::time_of_end(from, value, moved));
        const std::uint64_t left = *exact::left_of(from, value, moved);
        const std::uint64_t unit = std::uint64_t{1} << to.unit;
        if (!other) {
            ASSERT_GT(left + unit, std::uint64_t{exact::no_end(to.bits) - 1} << to.unit);
            continue;
        }
        const std::uint64_t later = *exact::left_of(to, *other, moved);
        ASSERT_GE(later, left);
        // What has ended gets the first unit, which may be all before it.
        ASSERT_LE(later, left + unit - (left > 0 ? 1 : 0));
        ASSERT_EQ(exact::value_of_end(to, exact::time_of_end(from, exact::no_end(from.bits), moved)),
                  exact::no_end(to.bits));
    }
}

/// Lookups in user space judge by the clock of packets; listings of members leave out what has ended.
TEST(ExactEnds, AreJudgedByTheClock) {
    const std::uint64_t now = program_now();
    Values values{
        .bits = 8, .meaning = SIEVE_EXACT_ENDS, .unit = 40, .base = now - (std::uint64_t{100} << 40)};
    std::mt19937_64 random(7);
    Valued entries = random_entries(2'000, 200, 8, random);
    const Built built = build(entries, values);
    const model::ExactImage model = built.model();
    std::size_t ended = 0;
    for (const auto& [address, value] : entries) {
        ASSERT_EQ(built.holds(address), value > 100) << value;
        ASSERT_EQ(model.contains(upper_of(address), lower_of(address), now), value > 100) << value;
        ended += value > 100 ? 0 : 1;
    }
    EXPECT_GT(ended, 500U);
    const auto members = exact_kind.list(built.lookup(), built.lines());
    ASSERT_TRUE(members);
    EXPECT_EQ(members->size(), entries.size() - ended);
    std::size_t visited = 0;
    ASSERT_TRUE(exact_kind.for_each_range(built.lookup(), built.lines(), [&](const AddressRange& range) {
        EXPECT_GT(entries.at(range.first), 100U);
        visited++;
    }));
    EXPECT_EQ(visited, entries.size() - ended);
    EXPECT_EQ(exact_kind.add_up(built.lookup(), built.lines())->keys, entries.size());
}

} // namespace
} // namespace sieve
