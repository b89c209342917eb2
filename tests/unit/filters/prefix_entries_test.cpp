// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/prefix_entries.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "libsieve/filters/entry_probes.hpp"
#include "unit/keys/members_of_texts.hpp"

namespace sieve {
namespace {

using test::members_of_texts;

std::vector<std::uint32_t> lengths(const sieve_probes& probes, int family) {
    std::vector<std::uint32_t> all;
    for (int i = 0; i < probes.count[family]; i++)
        all.push_back(probes.length[family][i] - (family == SIEVE_FAMILY_V4 ? 96U : 0U));
    return all;
}

using Lengths = std::vector<std::uint32_t>;

// Nothing is merged: neither what is inside another prefix nor neighbours. A repetition counts once.
TEST(PrefixEntries, AreWhatTheListHas) {
    std::uint64_t listed = 0;
    const auto entries = entries_of(members_of_texts({"10.0.0.0/24", "10.0.0.0/25", "10.0.1.0/24", "10.0.0.7",
                                                      "10.0.0.0/24", "10.0.0.0-10.0.0.2", "2001:db8::/48"}),
                                    &listed);
    EXPECT_EQ(listed, 8U) << "the range is two prefixes";
    EXPECT_EQ(entries.size(), 7U);
    const Members back = members_of_entries(entries, SIEVE_FIELD_SRC);
    EXPECT_EQ(back.ranges.size(), 7U);
    const auto again = entries_of(back);
    ASSERT_EQ(again.size(), entries.size());
    for (std::size_t i = 0; i < again.size(); i++)
        EXPECT_TRUE(std::equal(std::begin(again[i].word), std::end(again[i].word), entries[i].word));
}

TEST(PrefixEntries, OfTheOtherFieldHaveTheSameForm) {
    const auto source = entries_of(members_of_texts({"10.0.0.0/24", "10.0.0.7"}));
    const auto destination = entries_of(members_of_texts({"10.0.0.0/24", "10.0.0.7"}, SIEVE_FIELD_DST));
    ASSERT_EQ(source.size(), destination.size());
    for (std::size_t i = 0; i < source.size(); i++)
        EXPECT_TRUE(std::equal(std::begin(source[i].word), std::end(source[i].word), destination[i].word));
}

TEST(PrefixEntries, GetProbesThatTakeEveryAddressAndTheNamedLengths) {
    const auto probes = [](const std::vector<std::string>& texts, const PrefixLimits& limits = {}) {
        return choose_probes(entries_of(members_of_texts(texts)), SIEVE_FIELD_SRC, limits).value();
    };
    EXPECT_EQ(lengths(probes({"10.0.0.0/24"}), SIEVE_FAMILY_V4), (Lengths{24, 32}));
    EXPECT_EQ(lengths(probes({"10.0.0.0/24"}), SIEVE_FAMILY_V6), (Lengths{128}));
    EXPECT_EQ(lengths(probes({"10.0.0.0/31", "10.0.0.4"}), SIEVE_FAMILY_V4), (Lengths{32}))
        << "a probe more would not halve the stored keys";
    EXPECT_EQ(
        lengths(probes({"10.0.0.0/8", "10.0.0.0/16", "10.0.0.0/24"}, {.max_probes = 2}), SIEVE_FAMILY_V4),
        (Lengths{16, 32}));
    PrefixLimits named;
    named.lengths[SIEVE_FAMILY_V4] = {112};
    named.lengths[SIEVE_FAMILY_V6] = {48, 64};
    EXPECT_EQ(lengths(probes({"10.0.0.1"}, named), SIEVE_FAMILY_V4), (Lengths{16, 32}));
    EXPECT_EQ(lengths(probes({"10.0.0.1"}, named), SIEVE_FAMILY_V6), (Lengths{48, 64, 128}));
    named.max_probes = 2;
    const auto refused = choose_probes(entries_of(members_of_texts({"10.0.0.1"})), SIEVE_FIELD_SRC, named);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("--max-probes"), std::string::npos) << refused.error().message;
}

TEST(PrefixEntries, AreStoredUnderTheNextProbe) {
    PrefixLimits named;
    named.lengths[SIEVE_FAMILY_V4] = {112, 120};
    const auto entries =
        entries_of(members_of_texts({"10.0.0.0/23", "10.1.2.3", "10.4.0.0/14", "2001:db8::/64"}));
    const sieve_probes probes =
        choose_probes(entries_of(members_of_texts({"10.0.0.1"})), SIEVE_FIELD_SRC, named).value();
    sieve_lookup lookup{};
    lookup.fields = SIEVE_FIELD_SRC;
    lookup.probes = 3;
    const StoredKeys stored(lookup, probes);
    double counts[4];
    std::size_t n = 0;
    for (const sieve_key& entry : entries) {
        counts[n++] = stored.count(entry);
        if (stored.count(entry) > 1000) continue;
        double visited = 0;
        stored.for_each(entry, [&](const sieve_key& key) {
            visited++;
            const auto shapes = stored.shapes_under(key, 128);
            EXPECT_NE(std::ranges::find(shapes, shape_of(entry, SIEVE_FIELD_SRC)), shapes.end());
        });
        EXPECT_EQ(visited, stored.count(entry));
    }
    // In key_order: by the address.
    EXPECT_EQ(counts[0], 2);
    EXPECT_EQ(counts[1], 1);
    EXPECT_EQ(counts[2], 4);
    EXPECT_EQ(counts[3], 0x1p64);
}

TEST(PrefixEntries, AreMarkedInAnExactSet) {
    const auto entries = entries_of(members_of_texts({"10.0.0.0/24", "10.0.0.7"}));
    const sieve_probes probes = choose_probes(entries, SIEVE_FIELD_SRC, {}).value();
    sieve_lookup lookup{};
    lookup.fields = SIEVE_FIELD_SRC;
    lookup.probes = 2;
    const auto exact = exact_of_entries(entries, StoredKeys(lookup, probes));
    EXPECT_EQ(exact.size(), 4U) << "two entries, and a stored key for each";
    std::size_t marked = 0;
    for (const sieve_key& key : exact) marked += entry_marked_by(key) ? 1 : 0;
    EXPECT_EQ(marked, 2U);
}

} // namespace
} // namespace sieve
