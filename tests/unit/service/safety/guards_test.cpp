// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/safety/guards.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/service/lists/list_digest.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"
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

    // A list of which only the number of entries is known.
    static std::optional<ListSize> size(std::optional<std::uint64_t> entries) {
        return entries ? std::optional(ListSize{.entries = *entries}) : std::nullopt;
    }
    static ListSize size(const Feed& list) {
        return {.entries = list.entries(), .extent = extent_of(addresses_of(list))};
    }

    void passes(const Feed& list, std::optional<std::uint64_t> before = {}) {
        const auto refusal = check_list(set, list, size(before), protection);
        EXPECT_FALSE(refusal) << refusal->message;
    }
    void passes_after(const Feed& before, const Feed& list) {
        const auto refusal = check_list(set, list, size(before), protection);
        EXPECT_FALSE(refusal) << refusal->message;
    }
    void refuses_after(const Feed& before, Guard guard, const Feed& list) {
        const auto refusal = check_list(set, list, size(before), protection);
        ASSERT_TRUE(refusal) << "not refused by " << guard_name(guard);
        EXPECT_EQ(refusal->guard, guard) << refusal->message;
        expect_says(*refusal);
    }
    void refuses(Guard guard, const Feed& list, std::optional<std::uint64_t> before = {}) {
        const auto refusal = check_list(set, list, size(before), protection);
        ASSERT_TRUE(refusal) << "not refused by " << guard_name(guard);
        EXPECT_EQ(guard_name(refusal->guard), std::string(guard_name(guard))) << refusal->message;
        expect_says(*refusal);
    }
};

TEST_F(Guards, AnEmptyList) {
    refuses(Guard::empty, list_of({}));
}

TEST_F(Guards, AListThatShrinks) {
    passes(list_of(addresses(500)), 1000);
    refuses(Guard::shrink, list_of(addresses(499)), 1000);
    set.guards.most_shrink = 0.9;
    passes(list_of(addresses(499)), 1000);
    set.guards.most_shrink = 1;
    passes(list_of(addresses(1)), 1000);
}

TEST_F(Guards, AListThatGrows) {
    passes(list_of(addresses(2000)), 200);
    refuses(Guard::growth, list_of(addresses(2001)), 200);
    set.guards.most_growth = 11;
    passes(list_of(addresses(2001)), 200);
}

TEST_F(Guards, SmallListsComeAndGoAsTheyLike) {
    passes(list_of(addresses(1)), small_list - 1);
    passes(list_of(addresses(1000)), 1);
    refuses(Guard::growth, list_of(addresses(1001)), 1);
}

TEST_F(Guards, AFirstListIsComparedWithNone) {
    passes(list_of(addresses(5000)));
}

TEST_F(Guards, AListThatCoversTooMuch) {
    // A quarter is 2^30 addresses. Overlapping prefixes count once.
    passes(list_of({"64.0.0.0/3", "64.0.0.0/8", "96.0.0.0/3"}));
    refuses(Guard::coverage, list_of({"64.0.0.0/2", "8.8.8.8"}));
    refuses(Guard::coverage, list_of({"0.0.0.0/0"}));
    refuses(Guard::coverage, list_of({"2000::/3"}));
    set.guards.most_ipv6 = 0.125;
    passes(list_of({"2000::/3"}));
    set.guards.most_ipv4 = 0;
    refuses(Guard::coverage, list_of({"8.8.8.8"}));
}

TEST_F(Guards, AListWithAnAddressThatThisHostLivesBy) {
    refuses(Guard::protection, list_of({"192.0.2.1"}));
    refuses(Guard::protection, list_of({"10.0.0.1", "192.0.2.0/24"}));
    passes(list_of({"192.0.2.0", "192.0.2.2", "192.0.2.128/25"}));
    set.guards.protect_host = false;
    passes(list_of({"192.0.2.1"}));
}

// All of them at once, and no more than a person reads.
TEST_F(Guards, ARefusalNamesEveryAddress) {
    protection.host.push_back(host_address("192.0.2.7", "a resolver"));
    set.guards.protect = {"198.51.100.0/24"};
    refuses(Guard::protection, list_of({"192.0.2.0/24", "198.51.100.7"}));
    for (int i = 10; i < 40; i++)
        protection.host.push_back(host_address("192.0.2." + std::to_string(i), "an own address"));
    refuses(Guard::protection, list_of({"192.0.2.0/24", "198.51.100.7"}));
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
    refuses(Guard::protection, own);
}

// A set with a condition takes only packets that meet it: of a session, those of its ports.
TEST_F(Guards, AConditionTakesOnlyItsPackets) {
    HostAddress session = host_address("192.0.2.9", "an administrator's session (TCP port 22)");
    session.role = control::HostRole::session;
    session.ours = host_address("192.0.2.2").address;
    session.our_port = 22;
    session.their_port = 50000;
    protection.host = {session};
    const auto& dport = control::condition_parts()[SIEVE_PART_DPORT];
    const auto& sport = control::condition_parts()[SIEVE_PART_SPORT];
    for (const char* values : {"any", "22", "1-1023"}) {
        ASSERT_TRUE(set_condition(set.condition, dport, values));
        refuses(Guard::protection, list_of({"192.0.2.9"}));
    }
    ASSERT_TRUE(set_condition(set.condition, dport, "80,443"));
    passes(list_of({"192.0.2.9"}));
    set.guards.protect = {"198.51.100.7"};
    refuses(Guard::protection, list_of({"198.51.100.7"})); // whatever the port is
    // Of destinations, their port is the packet's.
    set.feed.fields = SIEVE_FIELD_DST;
    ASSERT_TRUE(set_condition(set.condition, dport, "50000"));
    refuses(Guard::protection, list_of({"192.0.2.9"}, SIEVE_FIELD_DST));
    ASSERT_TRUE(set_condition(set.condition, dport, "22"));
    passes(list_of({"192.0.2.9"}, SIEVE_FIELD_DST));
    // Nobody knows to which ports a gateway sends.
    protection.host = {host_address("192.0.2.9", "a gateway of eth0")};
    set.feed.fields = SIEVE_FIELD_SRC;
    passes(list_of({"192.0.2.9"}));
    ASSERT_TRUE(set_condition(set.condition, dport, "any"));
    ASSERT_TRUE(set_condition(set.condition, sport, "0-65535"));
    refuses(Guard::protection, list_of({"192.0.2.9"}));
}

TEST_F(Guards, AListWithAProtectedAddress) {
    set.guards.protect = {"198.51.100.0/24", "2001:db8::7"};
    refuses(Guard::protection, list_of({"198.51.100.77"}));
    refuses(Guard::protection, list_of({"198.0.0.0/8"}));
    refuses(Guard::protection, list_of({"2001:db8::/120"}));
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
    refuses(Guard::protection, list_of({"198.51.100.77"}));
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
    refuses(Guard::empty, list_of({}, set.feed.fields));
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
    refuses(Guard::growth, list_of(entries, set.feed.fields), 100);
    refuses(Guard::shrink, list_of(entries, set.feed.fields), 2003);
}

// Two entries after two: what they cover has grown.
TEST_F(Guards, GrowthIsThatOfTheAddressesCovered) {
    set.guards.most_ipv4 = set.guards.most_ipv6 = 1;
    const Feed friends = list_of({"198.51.100.1", "198.51.100.2"});
    refuses_after(friends, Guard::growth, list_of({"0.0.0.0/1", "128.0.0.0/1"}));
    refuses_after(friends, Guard::growth, list_of({"198.51.100.1", "198.51.100.2", "10.0.0.0/8"}));
    refuses_after(friends, Guard::growth, list_of({"198.51.100.1", "198.51.100.2", "2000::/12"}));
    // What somebody adds by hand.
    passes_after(friends, list_of({"198.51.100.1", "198.51.100.2", "10.1.0.0/16", "2001:db8::/32"}));
    // Ten times, to the address. An address that is in two entries counts once.
    const Feed wide = list_of({"10.0.0.0/15", "10.1.0.0/16"});
    passes_after(wide, list_of({"11.0.0.0/13", "11.16.0.0/15", "11.32.0.0/15"}));
    refuses_after(wide, Guard::growth, list_of({"11.0.0.0/12", "11.16.0.0/14", "11.32.0.0"}));
}

TEST_F(Guards, ShrinkageIsThatOfTheAddressesCovered) {
    const Feed wide = list_of({"10.0.0.0/15", "192.0.3.1"});
    refuses_after(wide, Guard::shrink, list_of({"10.0.0.0/16"}));
    passes_after(wide, list_of({"10.0.0.0/16", "192.0.3.1"}));
}

TEST_F(Guards, AFilterMayMistakeAnAddress) {
    const test::Files files;
    const auto image = Image::load(files.image("bad.sieve", {"192.0.2.1"}));
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_TRUE(matches_any(*image, std::vector<uint128>{host_address("192.0.2.1").address}));
    EXPECT_FALSE(matches_any(*image, {}));
}

// Images of what a server could hand over as text, too.
class ImageGuards : public Guards {
  protected:
    const test::Files files;

    [[nodiscard]] Image image_of(const std::vector<std::string>& entries,
                                 sieve_kind kind = SIEVE_KIND_RANGES) const {
        control::FeedSpec spec;
        spec.build.kind.kind = kind;
        spec.allow_wide = true;
        return Image::load(std::filesystem::path(files.image("image.sieve", entries, spec))).value();
    }
    [[nodiscard]] std::optional<Refusal> check(const Image& image, const std::optional<ListSize>& before = {},
                                               bool trusted = false) const {
        return check_image(set, image, before, protection, trusted);
    }
    void refused(const std::optional<Refusal>& refusal, Guard guard) const {
        ASSERT_TRUE(refusal) << "not refused by " << guard_name(guard);
        EXPECT_EQ(guard_name(refusal->guard), std::string(guard_name(guard))) << refusal->message;
        expect_says(*refusal);
    }
};

// An allowlist of two friends, and an image of one range that lets everybody in.
TEST_F(ImageGuards, GrowthAndCoverageAreThoseOfItsAddresses) {
    const ListSize friends = size(list_of({"198.51.100.1", "198.51.100.2"}));
    protection.takes_packets = false;
    const Image all = image_of({"0.0.0.0/1", "128.0.0.0/1"});
    ASSERT_EQ(all.file().keys, 1U);
    refused(check(all, friends), Guard::growth);
    refused(check(all), Guard::coverage);
    refused(check(image_of({"2000::/3"})), Guard::coverage);
    EXPECT_FALSE(check(image_of({"198.51.100.1", "198.51.100.2", "198.51.100.128/30"}), friends));
    // No freedom beyond that of a text list: it would have a hundred entries to grow to a thousand.
    refused(check(image_of({"203.0.112.0/22"}), friends), Guard::growth);
    const ListSize image = size_of(image_of(addresses(1000)));
    refused(check(image_of(addresses(499)), image), Guard::shrink);
    EXPECT_FALSE(check(image_of(addresses(500)), image));
    EXPECT_FALSE(check(image_of(addresses(500)), size(list_of(addresses(1000)))));
}

TEST_F(ImageGuards, TheHeaderIsNotBelieved) {
    Image image = image_of({"64.0.0.0/2", "8.8.8.8"});
    image.file().covered[SIEVE_FAMILY_V4] = 0;
    image.file().keys = image.file().entries = image.file().witnesses;
    image.seal();
    ASSERT_TRUE(image.check("image"));
    refused(check(image), Guard::coverage);
}

TEST_F(ImageGuards, ProtectedAddressesAndPrefixesAreSought) {
    refused(check(image_of({"192.0.2.0/24"})), Guard::protection);
    set.guards.protect = {"198.51.100.0/24", "2001:db8:1::/48"};
    refused(check(image_of({"198.51.100.77"})), Guard::protection);
    refused(check(image_of({"198.0.0.0/10"})), Guard::protection);
    refused(check(image_of({"2001:db8:1:2::77"})), Guard::protection);
    refused(check(image_of({"2001:db8::/40"})), Guard::protection);
    EXPECT_FALSE(check(image_of({"198.51.99.255", "198.51.101.0", "2001:db8::/48", "192.0.2.0"})));
    protection.takes_packets = false;
    EXPECT_FALSE(check(image_of({"192.0.2.0/24", "198.51.100.0/24"})));
}

// A filter says no more than whether it matches.
TEST_F(ImageGuards, AFilterThatCannotSayWhatItCoversIsRefused) {
    const Image filter = image_of({"198.51.100.1"}, SIEVE_KIND_XORSAT);
    refused(check(filter), Guard::coverage);
    EXPECT_FALSE(check(filter, {}, true)) << "signed";
    set.guards.unchecked_images = true;
    EXPECT_FALSE(check(filter));
    // Still it is asked what it can be asked.
    refused(check(image_of({"192.0.2.1"}, SIEVE_KIND_XORSAT)), Guard::protection);
    const auto wide = check(image_of({"64.0.0.0/2", "32.0.0.0/6"}, SIEVE_KIND_BLOCKED));
    ASSERT_TRUE(wide); // a sample tells how much it covers, so its message varies
    EXPECT_EQ(wide->guard, Guard::coverage) << wide->message;
    set.guards.protect = {"198.51.0.0/16"};
    refused(check(image_of({"198.51.100.0/24"}, SIEVE_KIND_BLOCKED)), Guard::protection);
    refused(check(filter, ListSize{.entries = 1000, .image = true}), Guard::shrink);
    set.feed.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    set.guards.unchecked_images = false;
    control::FeedSpec flows;
    flows.fields = set.feed.fields;
    flows.build.kind.kind = SIEVE_KIND_XORSAT;
    refused(
        check(Image::load(std::filesystem::path(files.image("flows", {"198.51.100.1 443"}, flows))).value()),
        Guard::coverage);
}

} // namespace
} // namespace sieve::service
