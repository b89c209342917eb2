// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/take_bans.hpp"

#include <gtest/gtest.h>

#include "unit/messages.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {
namespace {

using test::at_second;
using test::LiveWorld;
using test::prefix_of;

class TakeBansTest : public testing::Test, public LiveWorld {
  protected:
    Configuration configuration;
    const Time now = at_second(100);

    void SetUp() override {
        configuration.state_directory = files.path("state");
        give("block");
    }
    void give(const std::string& name) {
        SetConfiguration set = stream_set();
        set.name = name;
        set.sources = {BanSpec{}};
        configuration.sets.push_back(set);
        if (configuration.interfaces.empty()) configuration.interfaces.push_back({.name = "eth0"});
        configuration.interfaces[0].sets.push_back(name);
    }
    static BanChange added(const std::string& address) { return {.prefix = prefix_of(address)}; }
    static BanChange removed(const std::string& address) {
        return {.step = BanStep::remove, .prefix = prefix_of(address)};
    }
    Result<TakenBans> take(std::vector<BanChange> changes, bool counts = true,
                           const std::function<bool(const Prefix&)>& listed = {}) {
        BanLedger ledger(configuration.state_directory, "block");
        return take_bans({.set = "block", .changes = std::move(changes), .counts = counts}, configuration,
                         host, ledger, now, listed);
    }
    [[nodiscard]] std::size_t banned() {
        return list_bans(configuration, "block", now).value().front().bans.size();
    }
};

TEST_F(TakeBansTest, TheOnlySetIsMeant) {
    EXPECT_EQ(set_for_bans(configuration, "").value(), "block");
    EXPECT_EQ(set_for_bans(configuration, "block").value(), "block");
    give("guests");
    expect_error(set_for_bans(configuration, ""), ErrorKind::invalid_request);
    EXPECT_EQ(set_for_bans(configuration, "guests").value(), "guests");
    expect_error(set_for_bans(configuration, "bad"), ErrorKind::invalid_request);
    expect_error(set_for_bans({}, ""), ErrorKind::invalid_request);
}

TEST_F(TakeBansTest, CountsWhatWasThere) {
    ASSERT_TRUE(take({added("192.0.2.1"), added("192.0.2.2")}));
    EXPECT_EQ(banned(), 2U);
    const auto one = take({removed("192.0.2.1"), removed("192.0.2.9")});
    ASSERT_TRUE(one);
    EXPECT_EQ(one->lifted, 1U);
    EXPECT_EQ(one->absent, std::vector{prefix_of("192.0.2.9")});
    EXPECT_GT(one->mark.bytes, 0U);
    const auto none = take({removed("192.0.2.0/24")});
    ASSERT_TRUE(none);
    EXPECT_EQ(none->absent.size(), 1U);
    EXPECT_EQ(none->mark.bytes, 0U); // nothing was written
    EXPECT_EQ(take({{.step = BanStep::flush}})->lifted, 1U);
    EXPECT_EQ(banned(), 0U);
}

// What the list in force has is banned; what it lacks may be, since it lacks what this host depends on.
TEST_F(TakeBansTest, AsksTheListFirst) {
    ASSERT_TRUE(take({added("192.0.2.1"), added("192.0.2.2"), added("198.51.100.0/24")}));
    const auto one_is_listed = [](const Prefix& prefix) { return prefix == prefix_of("192.0.2.1"); };
    const auto first = take({removed("192.0.2.1")}, true, one_is_listed);
    EXPECT_EQ(first->lifted, 1U);
    EXPECT_TRUE(first->absent.empty());
    EXPECT_GT(first->mark.bytes, 0U);
    const auto others = take({removed("192.0.2.2"), removed("192.0.2.3")}, true, one_is_listed);
    EXPECT_EQ(others->lifted, 1U);
    EXPECT_EQ(others->absent, std::vector{prefix_of("192.0.2.3")});
    EXPECT_EQ(take({removed("198.51.100.0/24")}, true, [](const Prefix&) { return true; })->lifted, 1U);
    EXPECT_EQ(banned(), 0U);
}

TEST_F(TakeBansTest, WhatThisHostDependsOnIsNotBanned) {
    host.addresses = {{.address = prefix_of("192.0.2.200").address, .what = "a gateway of eth0"}};
    for (const char* address : {"192.0.2.200", "192.0.2.0/24"}) {
        expect_error(take({added("198.51.100.1"), added(address)}, false), ErrorKind::bad_input);
    }
    EXPECT_EQ(banned(), 0U);
    ASSERT_TRUE(take({removed("192.0.2.200")})); // to lift a ban is never refused
    configuration.sets[0].guards.protect = {"203.0.113.0/24"};
    EXPECT_FALSE(take({added("203.0.113.7")}));
}

TEST_F(TakeBansTest, TooManyAddressesAreNotBanned) {
    ASSERT_TRUE(take({added("8.0.0.0/7")}));
    const auto taken = take({added("16.0.0.0/4"), added("64.0.0.0/2")});
    ASSERT_FALSE(taken);
    EXPECT_TRUE(taken.error().message.ends_with("; nothing was banned")) << taken.error().message;
    EXPECT_EQ(banned(), 1U);
    ASSERT_TRUE(take({added("16.0.0.0/6")}));
    EXPECT_FALSE(take({added("64.0.0.0/2")})); // with those that are there
}

} // namespace
} // namespace sieve::service::live
