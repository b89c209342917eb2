// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/default_kind.hpp"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "libsieve/filters/kinds/choice.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/members.hpp"
#include "unit/keys/members_of_texts.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

constexpr std::uint64_t MiB = 1 << 20;

BuildOptions automatic(const std::function<void(BuildOptions&)>& ask = {}) {
    BuildOptions options;
    options.kind.kind = automatic_kind;
    if (ask) ask(options);
    return options;
}

ListFacts addresses(std::uint64_t ipv4, std::uint64_t ipv6 = 0) {
    ListFacts list;
    list.addresses[SIEVE_FAMILY_V4] = ipv4;
    list.addresses[SIEVE_FAMILY_V6] = ipv6;
    return list;
}

std::string kind(const ListFacts& list, const std::function<void(BuildOptions&)>& ask = {}) {
    return kind_name(chosen_kind(automatic(ask), list).kind);
}

std::string reason(const ListFacts& list, const std::function<void(BuildOptions&)>& ask = {}) {
    return chosen_kind(automatic(ask), list).reason;
}

TEST(DefaultKind, IsExactForAddresses) {
    for (const ListFacts& list : {addresses(1), addresses(10'000'000), addresses(100'000'000),
                                  addresses(0, 10'000'000), addresses(5'000'000, 5'000'000)}) {
        EXPECT_EQ(kind(list), "exact");
        EXPECT_EQ(reason(list), "");
    }
    ListFacts destinations = addresses(7);
    destinations.fields = SIEVE_FIELD_DST;
    EXPECT_EQ(kind(destinations), "exact");
    ListFacts exceptions = addresses(7);
    exceptions.excepts_ranges = true;
    EXPECT_EQ(kind(exceptions), "exact") << "no member is an exception, and nothing else matches";
    ListFacts ranges = addresses(7, 7);
    ranges.ranges = true;
    EXPECT_EQ(kind(ranges), "ranges");
    expect_says(reason(ranges));
}

TEST(DefaultKind, IsAFilterForOtherKeys) {
    constexpr std::uint32_t others[] = {SIEVE_FIELD_SRC | SIEVE_FIELD_DST,
                                        SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT, SIEVE_FIELD_DPORT,
                                        SIEVE_FIELD_ALL};
    for (const std::uint32_t fields : others) {
        EXPECT_EQ(kind({.fields = fields}), standard_kind().facts().name);
        EXPECT_EQ(reason({.fields = fields}), "");
    }
}

// What exact sets do not take.
TEST(DefaultKind, IsAFilterIfOneIsAskedFor) {
    const std::function<void(BuildOptions&)> wishes[] = {
        [](BuildOptions& options) { options.bits_per_key = 16; },
        [](BuildOptions& options) { options.fpr = 1e-4; },
        [](BuildOptions& options) { options.memory = 1 << 20; },
        [](BuildOptions& options) { options.kind.choices = 2; },
        [](BuildOptions& options) { options.kind.alpha = 0.5; },
        [](BuildOptions& options) { options.kind.hashes = 8; },
        [](BuildOptions& options) { options.kind.rounds = 3; },
        [](BuildOptions& options) { options.prefixes.max_probes = 2; },
    };
    for (const auto& wish : wishes) {
        EXPECT_EQ(kind_of(chosen_kind(automatic(wish), addresses(1000)).kind).exact(), nullptr);
        EXPECT_EQ(reason(addresses(1000), wish), "") << "they know";
        ListFacts ranges = addresses(1000);
        ranges.ranges = true;
        EXPECT_EQ(kind_of(chosen_kind(automatic(wish), ranges).kind).exact(), nullptr);
    }
    // The rest says how to build, not what.
    EXPECT_EQ(kind(addresses(1000), [](BuildOptions& options) { options.kind.effort = Effort::best; }),
              "exact");
    EXPECT_EQ(kind(addresses(1000), [](BuildOptions& options) { options.seed = 7; }), "exact");
    EXPECT_EQ(kind(addresses(1000), [](BuildOptions& options) { options.memory_limit = 64 * MiB; }), "exact");
    BuildOptions named;
    named.kind.kind = SIEVE_KIND_BLOCKED;
    EXPECT_EQ(chosen_kind(named, addresses(1000)).kind, SIEVE_KIND_BLOCKED);
}

// The line is where the table takes 256 MiB: an address takes at least so many bits as there are to tell the
// lists of this length apart, and the table no more than 1.35 times as many (docs/exact.md).
TEST(DefaultKind, IsExactAsLongAsMemoryIsNotTheIssue) {
    const auto longest = [](const std::function<ListFacts(std::uint64_t)>& list) {
        std::uint64_t low = 1, high = std::uint64_t{1} << 31;
        while (low + 1 < high) {
            const std::uint64_t middle = low + (high - low) / 2;
            (kind(list(middle)) == "exact" ? low : high) = middle;
        }
        return static_cast<double>(low);
    };
    const double ipv4 = longest([](std::uint64_t n) { return addresses(n); });
    EXPECT_GT(ipv4, 1.8e8);
    EXPECT_LT(ipv4, 2.9e8) << "5.9 bits each, the least for so many";
    // 16 bytes each, of 96.5% of the places.
    EXPECT_NEAR(longest([](std::uint64_t n) { return addresses(0, n); }), 256 * MiB / 16 * .965, 1e4);

    const ListFacts many = addresses(0, 20'000'000);
    EXPECT_EQ(kind(many), standard_kind().facts().name);
    expect_says(reason(many));
    ListFacts exceptions = many;
    exceptions.excepts_ranges = true;
    EXPECT_EQ(kind(exceptions), "ranges") << "a filter cannot be asked for each address";
    // Whoever wants it gets it.
    BuildOptions exact;
    exact.kind.kind = SIEVE_KIND_EXACT;
    EXPECT_EQ(chosen_kind(exact, many).kind, SIEVE_KIND_EXACT);
}

TEST(DefaultKind, IsAFilterOfALongListWithAMemoryLimit) {
    const auto limit = [](BuildOptions& options) { options.memory_limit = 16 * MiB; };
    const ListFacts spilled{.spilled = true};
    EXPECT_EQ(kind(spilled, limit), "blocked");
    expect_says(reason(spilled, limit));
    // A key of several fields gets the same kind whether or not the list is too long.
    EXPECT_EQ(kind({.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DST}, limit), "blocked");
    EXPECT_EQ(kind({.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DST, .spilled = true}, limit), "blocked");
}

TEST(DefaultKind, SeesWhatAListIsMadeOf) {
    const auto facts = [](const std::vector<std::string>& texts, std::uint32_t fields = SIEVE_FIELD_SRC,
                          const std::vector<std::string>& except = {}) {
        const Members members = test::members_of_texts(texts, fields);
        Exceptions exceptions;
        if (!except.empty()) exceptions.lines = prefixes_of(test::members_of_texts(except, fields));
        return facts_of(members.keys, members.ranges, exceptions);
    };
    const ListFacts mixed = facts({"192.0.2.1", "2001:db8::1", "192.0.2.2", "::1"});
    EXPECT_EQ(mixed.addresses[SIEVE_FAMILY_V4], 2U);
    EXPECT_EQ(mixed.addresses[SIEVE_FAMILY_V6], 2U);
    EXPECT_FALSE(mixed.ranges || mixed.excepts_ranges || mixed.spilled);
    EXPECT_TRUE(facts({"192.0.2.1", "10.0.0.0/8"}).ranges);
    EXPECT_TRUE(facts({"2001:db8::/48"}).ranges);
    EXPECT_FALSE(facts({"192.0.2.1"}, SIEVE_FIELD_SRC, {"192.0.2.2", "2001:db8::7"}).excepts_ranges);
    EXPECT_TRUE(facts({"192.0.2.1"}, SIEVE_FIELD_SRC, {"192.0.2.2", "10.0.0.0/8"}).excepts_ranges);
    const ListFacts flows = facts({"192.0.2.0/24 80"}, SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT);
    EXPECT_EQ(flows.fields, SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT);
    EXPECT_FALSE(flows.ranges) << "of addresses";
}

} // namespace
} // namespace sieve
