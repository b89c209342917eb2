// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tables of kind `exact` with values, in the kernel: keys end by the program's own clock, without anybody's
// help.
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/filters/kinds/exact/exact_ends.hpp"
#include "libsieve/filters/kinds/exact/exact_table.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/packets/carrier.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve::kernel {
namespace {

using exact::Values;
using test::shared_program;
using test::value_or_fail;
using Entries = std::map<uint128, std::uint32_t>;

constexpr std::uint64_t second = 1'000'000'000;

FilterMap map_of(const Entries& entries, const Values& values) {
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
    const std::array<__u64, SIEVE_HASH_KEY_WORDS> secret = {1, 2, 3, 4, 5, 6};
    exact::Table table = value_or_fail(
        exact::build_table({.ipv4 = four, .ipv6 = six, .ipv4_values = four_values, .ipv6_values = six_values},
                           SIEVE_FIELD_SRC, secret, values));
    table.geometry.magic = SIEVE_MAGIC;
    std::vector<sieve_line> lines(SIEVE_FIRST_LINE + table.lines.size());
    std::memcpy(lines.data(), &table.geometry, sizeof(sieve_line));
    std::copy(table.lines.begin(), table.lines.end(), lines.begin() + SIEVE_FIRST_LINE);
    return value_or_fail(FilterMap::create(lines, "values"));
}

class ExactValues : public testing::TestWithParam<HookPoint> {
  protected:
    void ask_only(const FilterMap& map) {
        const Status done = scratch_.table().replace({.sets = {{.name = "values", .map_fd = map.fd()}}});
        ASSERT_TRUE(done) << done.error().message;
    }

    [[nodiscard]] bool matches(uint128 address) {
        const sieve_key key{
            {static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address), 0, 0, 0}};
        return value_or_fail(scratch_.run(carrier_.carry(key, SIEVE_FIELD_SRC))) == SIEVE_VERDICT_DROP;
    }

    const Scratch& scratch_ = shared_program(GetParam());
    packets::Carrier carrier_;
    std::mt19937_64 random_{1};
};

uint128 v4(std::uint64_t number) {
    return sieve_v4_mapped(static_cast<std::uint32_t>(0x0a000000 + number));
}
uint128 v6(std::uint64_t number) {
    return address_number(0x20010db800000000, number);
}

/// Members of both families, with every value, and strangers, at every width that ends may have. What ended
/// before the test began is no member, what does not end during the test is one.
TEST_P(ExactValues, EndByTheProgramsClock) {
    for (const std::uint32_t bits : {6, 8, 11, 16})
        for (const std::size_t most : {3, 5'000, 100'000}) {
            const std::size_t keys = test::bounded(most);
            const std::uint32_t ended = exact::no_end(bits) / 3;
            const Values values{.bits = bits,
                                .meaning = SIEVE_EXACT_ENDS,
                                .unit = 45, // ten hours
                                .base = program_now() - (std::uint64_t{ended} << 45) - second};
            Entries entries;
            const auto value = [&] { return static_cast<std::uint32_t>(random_() & exact::no_end(bits)); };
            for (std::size_t i = 0; i < keys; i++) entries[v4(random_() % 10'000'000)] = value();
            for (std::size_t i = 0; i < keys / 4; i++) entries[v6(random_() % 1'000'000)] = value();
            const FilterMap map = map_of(entries, values);
            ask_only(map);
            std::size_t left = test::bounded(4'000);
            std::size_t ends = 0;
            for (const auto& [address, end] : entries) {
                if (left-- == 0) break;
                ASSERT_EQ(matches(address), end > ended) << end << " of " << bits << " bits";
                ends += end > ended ? 0 : 1;
                for (const uint128 other : {address + 1, address ^ 2}) {
                    const auto found = entries.find(other);
                    ASSERT_EQ(matches(other), found != entries.end() && found->second > ended);
                }
            }
            if (keys > 3) {
                EXPECT_GT(ends, 0U);
            }
        }
}

/// Keys that end one after the other while packets come. Each is a member before its end and never again.
TEST_P(ExactValues, EndWhilePacketsCome) {
    constexpr std::uint32_t bits = 8;
    constexpr std::uint32_t unit = 26; // 67 milliseconds
    constexpr std::uint32_t last = 12;
    const std::uint64_t base = program_now();
    Entries entries;
    for (std::uint32_t end = 1; end <= last; end++) entries[v4(end)] = entries[v6(end)] = end;
    entries[v4(255)] = entries[v6(255)] = exact::no_end(bits);
    const FilterMap map =
        map_of(entries, {.bits = bits, .meaning = SIEVE_EXACT_ENDS, .unit = unit, .base = base});
    ask_only(map);
    std::size_t members = 0;
    std::size_t gone = 0;
    std::uint64_t before = 0;
    while (before <= base + (std::uint64_t{last} << unit)) {
        for (const auto& [address, end] : entries) {
            before = program_now();
            const bool found = matches(address);
            const std::uint64_t after = program_now();
            const std::uint64_t at = base + (std::uint64_t{end} << unit);
            if (end == exact::no_end(bits) || after < at) {
                ASSERT_TRUE(found) << end;
                members++;
            } else if (before >= at) {
                ASSERT_FALSE(found) << end;
                gone++;
            }
        }
    }
    EXPECT_GT(members, 2U * last);
    EXPECT_GT(gone, last);
}

/// Long after the last unit, and before the base, which is then behind the clock's wrap.
TEST_P(ExactValues, StopAtTheLastUnit) {
    for (const std::uint32_t bits : {6, 8, 13}) {
        Entries entries;
        for (std::uint32_t end = 0; end <= exact::no_end(bits); end += end < 60 ? 1 : 1 + end / 7)
            entries[v4(end)] = entries[v6(end)] = end;
        for (const std::uint32_t end : {exact::no_end(bits) - 1, exact::no_end(bits)})
            entries[v4(end)] = entries[v6(end)] = end;
        const std::uint64_t units = std::uint64_t{exact::no_end(bits)} << 30;
        for (const std::uint64_t since : {units, 2 * units + 5, 1000 * units, std::uint64_t{1} << 62}) {
            const FilterMap map = map_of(
                entries,
                {.bits = bits, .meaning = SIEVE_EXACT_ENDS, .unit = 30, .base = program_now() - since});
            ask_only(map);
            for (const auto& [address, end] : entries)
                ASSERT_EQ(matches(address), end == exact::no_end(bits)) << end;
        }
        const FilterMap map = map_of(
            entries,
            {.bits = bits, .meaning = SIEVE_EXACT_ENDS, .unit = 30, .base = program_now() + 1000 * second});
        ask_only(map);
        for (const auto& [address, end] : entries) ASSERT_EQ(matches(address), end > 0) << end;
    }
}

INSTANTIATE_TEST_SUITE_P(Hooks, ExactValues, testing::Values(HookPoint::xdp, HookPoint::egress),
                         [](const auto& info) { return std::string(hook_point_name(info.param)); });

} // namespace
} // namespace sieve::kernel
