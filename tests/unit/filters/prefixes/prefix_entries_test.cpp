// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/prefixes/prefix_entries.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/prefix_text.hpp"
#include "libsieve/filters/prefixes/entry_probes.hpp"
#include "libsieve/filters/prefixes/key_expansion.hpp"
#include "libsieve/keys/key_order.hpp"
#include "unit/keys/members_of_texts.hpp"
#include "unit/messages.hpp"

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
    expect_error(choose_probes(entries_of(members_of_texts({"10.0.0.1"})), SIEVE_FIELD_SRC, named),
                 ErrorKind::invalid_request);
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
            const auto forms = stored.forms_under(key, 128);
            EXPECT_NE(std::ranges::find(forms, form_of(entry, SIEVE_FIELD_SRC)), forms.end());
        });
        EXPECT_EQ(visited, stored.count(entry));
    }
    // In key_order: by the address.
    EXPECT_EQ(counts[0], 2);
    EXPECT_EQ(counts[1], 1);
    EXPECT_EQ(counts[2], 4);
    EXPECT_EQ(counts[3], 0x1p64);
}

constexpr std::uint32_t flow = SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_DPORT;

std::vector<std::string> described(const sieve_probes& probes, int family) {
    std::vector<std::string> texts;
    for (const EntryForm& probe : probes_of(probes, family))
        texts.push_back(describe_probe(as_probe(probe), family));
    std::sort(texts.begin(), texts.end());
    return texts;
}

TEST(PrefixEntries, AmongSeveralFieldsAreWhatTheListHas) {
    const std::vector<std::string> texts = {"10.0.0.0/8 192.0.2.1 53",
                                            "10.0.0.0/8 192.0.2.1 *",
                                            "10.1.2.3 * 53",
                                            "2001:db8::/32 2001:db8::/48 443",
                                            "* * 80",
                                            "10.0.0.1 192.0.2.1 53"};
    std::uint64_t listed = 0;
    std::vector<std::string> twice = texts;
    twice.insert(twice.end(), {"10.0.0.0-10.255.255.255 192.0.2.1 53", "10.0.0.1 192.0.2.0-192.0.2.2 7"});
    const auto entries = entries_of(members_of_texts(twice, flow), &listed);
    EXPECT_EQ(listed, 9U);
    EXPECT_EQ(entries.size(), 8U);
    const auto again = entries_of(members_of_entries(entries, flow));
    ASSERT_EQ(again.size(), entries.size());
    for (std::size_t i = 0; i < again.size(); i++) EXPECT_TRUE(same_key(again[i], entries[i]));
    std::vector<std::string> open;
    for (const sieve_key& entry : entries) {
        EXPECT_EQ(form_of(marked_entry(entry), flow), form_of(entry, flow));
        EXPECT_EQ(entry_marked_by(marked_entry(entry)).has_value(), true);
        if (!family_of(entry, flow)) open.push_back(format_prefix(prefix_of(entry, flow), flow));
    }
    EXPECT_EQ(open, std::vector<std::string>{"* * 80"});
}

TEST(PrefixEntries, AmongSeveralFieldsGetAProbeOfWholeKeysAndOfEachForm) {
    using Texts = std::vector<std::string>;
    const auto probes = [](const Texts& texts, const PrefixLimits& limits = {}) {
        return choose_probes(entries_of(members_of_texts(texts, flow)), flow, limits).value();
    };
    EXPECT_EQ(described(probes({"10.0.0.0/30 192.0.2.1 53"}), SIEVE_FAMILY_V4),
              (Texts{"src dst dport", "src/30 dst dport"}));
    EXPECT_EQ(described(probes({"10.0.0.0/30 192.0.2.1 53"}), SIEVE_FAMILY_V6), (Texts{"src dst dport"}));
    EXPECT_EQ(described(probes({"10.0.0.0/31 192.0.2.1 53", "10.0.0.1 192.0.2.1 54"}), SIEVE_FAMILY_V4),
              (Texts{"src dst dport"}))
        << "a probe more would not halve the stored keys";
    // What names no address is asked for in both families.
    const sieve_probes open = probes({"* * 53", "10.0.0.0/8 * 53", "10.0.0.0/9 * 54"});
    EXPECT_EQ(described(open, SIEVE_FAMILY_V4), (Texts{"dport", "src dst dport", "src/9 dport"}));
    EXPECT_EQ(described(open, SIEVE_FAMILY_V6), (Texts{"dport", "src dst dport"}));
    PrefixLimits named;
    named.lengths[SIEVE_FAMILY_V4] = {120};
    EXPECT_EQ(described(probes({"10.0.0.1 192.0.2.1 53"}, named), SIEVE_FAMILY_V4),
              (Texts{"src dst dport", "src dst/24 dport", "src/24 dst dport"}));
    const auto refused = [](ErrorKind kind, const Texts& texts, std::uint32_t fields,
                            const PrefixLimits& limits) {
        expect_error(choose_probes(entries_of(members_of_texts(texts, fields)), fields, limits), kind);
    };
    named.max_probes = 2;
    refused(ErrorKind::bad_input, {"10.0.0.1 192.0.2.1 53"}, flow, named);
    refused(ErrorKind::invalid_request, {"53 udp"}, SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO, named);
    refused(ErrorKind::bad_input, {"10.0.0.0/8 192.0.0.0/16 53"}, flow, {.max_probes = 1});
}

// Of several probes, an entry takes the one that makes the fewest stored keys.
TEST(PrefixEntries, AmongSeveralFieldsAreStoredUnderTheNearestProbe) {
    sieve_probes probes{};
    sieve_lookup lookup{};
    lookup.fields = flow;
    lookup.probes = 4;
    const auto add = [&](std::uint32_t source, std::uint32_t destination, std::uint32_t transport) {
        const std::uint32_t at = probes.count[SIEVE_FAMILY_V4]++;
        probes.length[SIEVE_FAMILY_V4][at] = static_cast<__u8>(source);
        probes.destination[SIEVE_FAMILY_V4][at] = static_cast<__u8>(destination);
        probes.transport[SIEVE_FAMILY_V4][at] = static_cast<__u8>(transport);
    };
    add(128, 128, SIEVE_FIELD_DPORT);
    add(120, 128, SIEVE_FIELD_DPORT);
    add(128, 124, SIEVE_FIELD_DPORT);
    add(128, 0, SIEVE_FIELD_DPORT);
    const StoredKeys stored(lookup, probes);
    const auto count = [&](const std::string& text) {
        return stored.count(entries_of(members_of_texts({text}, flow)).front());
    };
    EXPECT_EQ(count("10.0.0.1 192.0.2.1 53"), 1);
    EXPECT_EQ(count("10.0.0.0/30 192.0.2.1 53"), 4);
    EXPECT_EQ(count("10.0.0.0/24 192.0.2.1 53"), 1);
    EXPECT_EQ(count("10.0.0.0/23 192.0.2.1 53"), 2);
    EXPECT_EQ(count("10.0.0.0/31 192.0.2.0/28 53"), 2);
    EXPECT_EQ(count("10.0.0.0/24 192.0.2.0/28 53"), 16);
    EXPECT_EQ(count("10.0.0.0/30 * 53"), 4);
    EXPECT_TRUE(std::isinf(count("10.0.0.0/30 192.0.2.1 *")));
    EXPECT_TRUE(std::isinf(count("* 192.0.2.1 53")));
    EXPECT_TRUE(std::isinf(count("2001:db8::1 2001:db8::2 53")));
    EXPECT_TRUE(std::isinf(count("* * 53"))) << "packets of IPv6 would not ask for it";
    const sieve_key first = entries_of(members_of_texts({"10.0.0.0/31 192.0.2.0/28 53"}, flow)).front();
    std::set<std::string> texts;
    stored.for_each(first,
                    [&](const sieve_key& key) { texts.insert(format_prefix(prefix_of(key, flow), flow)); });
    EXPECT_EQ(texts, (std::set<std::string>{"10.0.0.0 192.0.2.0/28 53", "10.0.0.1 192.0.2.0/28 53"}));
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
