// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/guards.hpp"

#include <gtest/gtest.h>

#include "libsieve/service/list_digest.hpp"
#include "unit/control/files.hpp"
#include "unit/service/lists.hpp"

namespace sieve::service {
namespace {

using test::addresses;
using test::host_address;
using test::list_of;

class Guards : public testing::Test {
  protected:
    SetConfiguration set;
    Protection protection{.takes_packets = true, .host = {host_address("192.0.2.1")}};

    Guards() {
        set.name = "bad";
        set.sources = {FileSpec{"/lists/bad.txt"}};
    }

    void passes(const Feed& list, std::optional<std::uint64_t> before = {}) {
        const auto refusal = check_list(set, list, before, protection);
        EXPECT_FALSE(refusal) << refusal->message;
    }
    void refuses(Guard guard, const std::vector<std::string>& words, const Feed& list,
                 std::optional<std::uint64_t> before = {}) {
        const auto refusal = check_list(set, list, before, protection);
        ASSERT_TRUE(refusal) << "not refused by " << guard_name(guard);
        EXPECT_EQ(guard_name(refusal->guard), std::string(guard_name(guard))) << refusal->message;
        for (const std::string& word : words)
            EXPECT_NE(refusal->message.find(word), std::string::npos) << refusal->message;
        EXPECT_NE(refusal->message.find("set bad: "), std::string::npos) << refusal->message;
    }
};

TEST_F(Guards, AnEmptyList) {
    refuses(Guard::empty, {"/lists/bad.txt"}, list_of({}));
}

TEST_F(Guards, AListThatShrinks) {
    passes(list_of(addresses(500)), 1000);
    refuses(Guard::shrink, {"499 entries", "has 1000", "50.1%", "most-shrink is 50%", "[set.bad.guards]"},
            list_of(addresses(499)), 1000);
    set.guards.most_shrink = 0.9;
    passes(list_of(addresses(499)), 1000);
    set.guards.most_shrink = 1;
    passes(list_of(addresses(1)), 1000);
}

TEST_F(Guards, AListThatGrows) {
    passes(list_of(addresses(2000)), 200);
    refuses(Guard::growth, {"2001 entries", "has 200", "10.0 times", "most-growth is 10"},
            list_of(addresses(2001)), 200);
    set.guards.most_growth = 11;
    passes(list_of(addresses(2001)), 200);
}

TEST_F(Guards, SmallListsComeAndGoAsTheyLike) {
    passes(list_of(addresses(1)), small_list - 1);
    passes(list_of(addresses(1000)), 1);
    refuses(Guard::growth, {"1001 entries"}, list_of(addresses(1001)), 1);
}

TEST_F(Guards, AFirstListIsComparedWithNone) {
    passes(list_of(addresses(5000)));
}

TEST_F(Guards, AListThatCoversTooMuch) {
    // A quarter is 2^30 addresses. Overlapping prefixes count once.
    passes(list_of({"64.0.0.0/3", "64.0.0.0/8", "96.0.0.0/3"}));
    refuses(Guard::coverage, {"25% of all IPv4", "most-ipv4 is 25%"}, list_of({"64.0.0.0/2", "8.8.8.8"}));
    refuses(Guard::coverage, {"100% of all IPv4"}, list_of({"0.0.0.0/0"}));
    refuses(Guard::coverage, {"12.5% of all IPv6", "most-ipv6 is 1%"}, list_of({"2000::/3"}));
    set.guards.most_ipv6 = 0.125;
    passes(list_of({"2000::/3"}));
    set.guards.most_ipv4 = 0;
    refuses(Guard::coverage, {"2.33e-08% of all IPv4"}, list_of({"8.8.8.8"}));
}

TEST_F(Guards, AListWithAnAddressThatThisHostLivesBy) {
    refuses(Guard::protection, {"192.0.2.1", "a gateway of eth0", "protect-host = false"},
            list_of({"192.0.2.1"}));
    refuses(Guard::protection, {"192.0.2.1"}, list_of({"10.0.0.1", "192.0.2.0/24"}));
    passes(list_of({"192.0.2.0", "192.0.2.2", "192.0.2.128/25"}));
    set.guards.protect_host = false;
    passes(list_of({"192.0.2.1"}));
}

// All of them at once, and no more than a person reads.
TEST_F(Guards, ARefusalNamesEveryAddress) {
    protection.host.push_back(host_address("192.0.2.7", "a resolver"));
    set.guards.protect = {"198.51.100.0/24"};
    refuses(
        Guard::protection,
        {"the list holds 192.0.2.1, a gateway of eth0; 192.0.2.7, a resolver; 198.51.100.0/24, or a part "
         "of it, which is to be protected; take them out of the list, leave them out with own-addresses = "
         "\"skip\" in [set.bad.guards]",
         "protect-host = false", "protect in [set.bad.guards]"},
        list_of({"192.0.2.0/24", "198.51.100.7"}));
    for (int i = 10; i < 40; i++)
        protection.host.push_back(host_address("192.0.2." + std::to_string(i), "an own address"));
    refuses(Guard::protection, {"; and 25 more; take them out of the list"},
            list_of({"192.0.2.0/24", "198.51.100.7"}));
}

TEST_F(Guards, ProtectedAddressesAreLeftOut) {
    protection.host.push_back(host_address("192.0.2.7"));
    Feed list = list_of({"192.0.2.0/29", "192.0.2.7", "198.51.100.7"});
    const auto left_out = leave_out_protected(set, list, protection);
    ASSERT_TRUE(left_out);
    ASSERT_EQ(left_out->size(), 2U);
    EXPECT_EQ((*left_out)[0].text, "192.0.2.1");
    EXPECT_EQ((*left_out)[1].text, "192.0.2.7");
    passes(list);
    EXPECT_EQ(digest_of_list(list),
              digest_of_list(list_of({"198.51.100.7", "192.0.2.0", "192.0.2.2-192.0.2.6"})));
    // Of a list of these alone nothing would be left, so it stays to be refused.
    Feed own = list_of({"192.0.2.1"});
    EXPECT_TRUE(leave_out_protected(set, own, protection)->empty());
    refuses(Guard::protection, {"192.0.2.1"}, own);
}

TEST_F(Guards, AListWithAProtectedAddress) {
    set.guards.protect = {"198.51.100.0/24", "2001:db8::7"};
    refuses(Guard::protection, {"198.51.100.0/24", "protect in [set.bad.guards]"},
            list_of({"198.51.100.77"}));
    refuses(Guard::protection, {"198.51.100.0/24"}, list_of({"198.0.0.0/8"}));
    refuses(Guard::protection, {"2001:db8::7"}, list_of({"2001:db8::/120"}));
    passes(list_of({"198.51.99.255", "198.51.101.0", "2001:db8::8"}));
}

// An interface that has the set may name more.
TEST_F(Guards, WhatAnInterfaceProtectsIsRefused) {
    Configuration configuration;
    set.name = "bad";
    configuration.sets = {set};
    configuration.interfaces = {
        {.name = "eth0", .protect = {"198.51.100.0/24"}, .sets = {"bad"}},
        {.name = "eth1", .protect = {"203.0.113.7"}, .sets = {"other"}},
    };
    protection = protection_of(configuration, set, {});
    EXPECT_TRUE(protection.takes_packets);
    refuses(Guard::protection, {"198.51.100.0/24", "in the [[interface]]"}, list_of({"198.51.100.77"}));
    passes(list_of({"203.0.113.7"}));
}

TEST_F(Guards, ASetThatTakesNoPacketsMayHoldFriends) {
    protection.takes_packets = false;
    set.guards.protect = {"198.51.100.0/24"};
    passes(list_of({"192.0.2.1", "198.51.100.1"}));
}

TEST_F(Guards, KeysOfSeveralFieldsNameFlows) {
    set.feed.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    passes(list_of({"192.0.2.1 25"}, set.feed.fields));
    refuses(Guard::empty, {}, list_of({}, set.feed.fields));
    passes(list_of({"192.0.2.0/24 25", "* 22"}, set.feed.fields));
}

TEST_F(Guards, RangesOfKeysAreEntries) {
    set.feed.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    std::vector<std::string> entries;
    for (const std::string& address : addresses(1001)) entries.push_back(address + "/31 443");
    for (std::string& entry : entries)
        if (const char digit = entry[entry.find('/') - 1]; (digit - '0') % 2 != 0)
            entry.replace(entry.find("/31"), 3, "-11.9.9.9");
    passes(list_of(entries, set.feed.fields), 101);
    refuses(Guard::growth, {"1001 entries", "has 100"}, list_of(entries, set.feed.fields), 100);
    refuses(Guard::shrink, {"1001 entries", "has 2003"}, list_of(entries, set.feed.fields), 2003);
}

TEST_F(Guards, AFilterMayMistakeAnAddress) {
    const test::Files files;
    const auto image = Image::load(files.image("bad.sieve", {"192.0.2.1"}));
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_TRUE(matches_any(*image, std::vector<uint128>{host_address("192.0.2.1").address}));
    EXPECT_FALSE(matches_any(*image, {}));
}

} // namespace
} // namespace sieve::service
