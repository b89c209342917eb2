// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/prefixes/key_expansion.hpp"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

struct List {
    explicit List(const std::string& names) : keys(parse_fields(names).value()) {}

    void add(const std::string& text) {
        const char* p = text.data();
        sieve_key key{};
        entry::Fault fault;
        KeyRange range;
        if (entry::parse_entry(p, text.data() + text.size(), keys.fields(), key, fault)) return keys.add(key);
        p = text.data();
        ASSERT_TRUE(entry::parse_key_range(p, text.data() + text.size(), keys.fields(), range, fault))
            << text << ": " << entry::describe(fault);
        ranges.push_back(range);
    }
    List& operator<<(const std::string& text) {
        add(text);
        return *this;
    }

    [[nodiscard]] Result<KeyPlan> plan(std::uint32_t probes, std::uint64_t most = 1'000'000) const {
        return plan_keys(keys, ranges, {.max_probes = probes, .max_keys = most});
    }
    [[nodiscard]] bool holds(const KeyPlan& plan, const std::string& text) const {
        return is_member(plan, parse_key(text, keys.fields()).value());
    }

    KeySet keys;
    std::vector<KeyRange> ranges;
};

std::vector<std::string> probes(const KeyPlan& plan, int family) {
    std::vector<std::string> texts;
    for (int i = 0; i < plan.probes.count[family]; i++)
        texts.push_back(describe_probe({plan.probes.length[family][i], plan.probes.destination[family][i],
                                        plan.probes.transport[family][i], 0},
                                       family));
    return texts;
}

using Texts = std::vector<std::string>;

TEST(KeyExpansion, PutsAnAddressAndPrefixesIntoOneProbeWhereThatIsCheap) {
    List list("dst,dport,proto");
    list << "192.0.2.0/24 443 tcp"
         << "198.51.100.7 443 tcp"
         << "2001:db8::/32 53 udp";
    const auto plan = list.plan(4);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(probes(*plan, SIEVE_FAMILY_V4), Texts{"dst dport proto"});
    EXPECT_EQ(probes(*plan, SIEVE_FAMILY_V6), Texts{"dst/32 dport proto"});
    EXPECT_EQ(plan->stored.size(), 256U + 1 + 1);
    EXPECT_TRUE(list.holds(*plan, "192.0.2.99 443 tcp"));
    EXPECT_FALSE(list.holds(*plan, "192.0.2.99 444 tcp"));
    EXPECT_FALSE(list.holds(*plan, "192.0.3.0 443 tcp"));
    EXPECT_TRUE(list.holds(*plan, "2001:db8:ffff::1 53 udp"));
    EXPECT_FALSE(list.holds(*plan, "2001:db9::1 53 udp"));
}

TEST(KeyExpansion, UsesMoreProbesOnlyForALargeExpansion) {
    List list("dst,dport");
    for (int i = 0; i < 30; i++) list << "10." + std::to_string(i) + ".0.0/16 443";
    list << "192.0.2.1 443";
    const auto plan = list.plan(4);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(probes(*plan, SIEVE_FAMILY_V4), (Texts{"dst/16 dport", "dst dport"}));
    EXPECT_EQ(plan->stored.size(), 31U);
    const auto one = list.plan(1, 10'000'000);
    ASSERT_TRUE(one) << one.error().message;
    EXPECT_EQ(one->stored.size(), 30U * 65536 + 1);
    expect_error(list.plan(1, 1000), ErrorKind::bad_input);
}

TEST(KeyExpansion, GivesAnOpenFieldAProbeOfItsOwn) {
    List list("dst,dport,proto");
    list << "192.0.2.1 * udp"
         << "192.0.2.1 443 tcp"
         << "* 25 tcp";
    const auto plan = list.plan(4);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(probes(*plan, SIEVE_FAMILY_V4).size(), 3U);
    EXPECT_EQ(probes(*plan, SIEVE_FAMILY_V6), Texts{"dport proto"});
    EXPECT_TRUE(list.holds(*plan, "192.0.2.1 9 udp"));
    EXPECT_FALSE(list.holds(*plan, "192.0.2.1 9 tcp"));
    EXPECT_TRUE(list.holds(*plan, "203.0.113.5 25 tcp"));
    EXPECT_TRUE(list.holds(*plan, "2001:db8::1 25 tcp"));
    expect_error(list.plan(2), ErrorKind::bad_input);
}

// All of IPv6 is not all addresses.
TEST(KeyExpansion, KnowsAllOfAFamily) {
    List list("dst,dport");
    list << "::/0 443"
         << "0.0.0.0/0 80"
         << "* 25";
    const auto plan = list.plan(8);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_TRUE(list.holds(*plan, "2001:db8::1 443"));
    EXPECT_TRUE(list.holds(*plan, "8000::1 443"));
    EXPECT_FALSE(list.holds(*plan, "192.0.2.1 443"));
    EXPECT_TRUE(list.holds(*plan, "192.0.2.1 80"));
    EXPECT_FALSE(list.holds(*plan, "2001:db8::1 80"));
    EXPECT_TRUE(list.holds(*plan, "2001:db8::1 25"));
}

// Both addresses as prefixes, at random: each pair of addresses is answered as a scan of the entries answers.
TEST(KeyExpansion, OfTwoPrefixesAnswersLikeTheEntries) {
    std::mt19937_64 random(3);
    for (const std::uint32_t most : {1U, 2U, 4U, 8U}) {
        KeySet none(SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_PROTO);
        std::vector<KeyRange> ranges;
        for (int i = 0; i < 12; i++) {
            const auto side = [&] {
                const std::uint32_t host = (1U << (random() % 5)) - 1;
                const std::uint32_t first = 0x0a000000U | (random() % 64 & ~host);
                return AddressRange{sieve_v4_mapped(first), sieve_v4_mapped(first | host)};
            };
            ranges.push_back(
                {.source = side(), .destination = side(), .transport = 6, .fields = none.fields()});
        }
        const auto plan = plan_keys(none, ranges, {.max_probes = most, .max_keys = 1'000'000});
        ASSERT_TRUE(plan) << plan.error().message;
        EXPECT_LE(plan->probes.count[SIEVE_FAMILY_V4], most);
        EXPECT_EQ(plan->probes.count[SIEVE_FAMILY_V6], 0);
        for (std::uint32_t s = 0; s < 64; s++)
            for (std::uint32_t d = 0; d < 64; d++) {
                sieve_key key{};
                key.word[1] = sieve_v4_mapped(0x0a000000U + s);
                key.word[3] = sieve_v4_mapped(0x0a000000U + d);
                key.word[4] = 6;
                bool expected = false;
                for (const KeyRange& r : ranges)
                    expected =
                        expected || (r.source.first <= key.word[1] && key.word[1] <= r.source.last &&
                                     r.destination.first <= key.word[3] && key.word[3] <= r.destination.last);
                ASSERT_EQ(is_member(*plan, key), expected) << s << ' ' << d << " with " << most << " probes";
            }
    }
}

TEST(KeyExpansion, SaysWhatTwoPrefixesCost) {
    List list("src,dst");
    for (int i = 8; i < 24; i++)
        list << "10.0.0.0/" + std::to_string(i) + " 172.16.0.0/" + std::to_string(32 - i / 2);
    expect_error(list.plan(2, 1000), ErrorKind::bad_input);
}

} // namespace
} // namespace sieve
