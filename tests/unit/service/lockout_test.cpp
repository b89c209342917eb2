// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lockout.hpp"

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/service/in_process.hpp"
#include "unit/service/lists.hpp"

namespace sieve::service {
namespace {

using test::FakeKernel;
using test::Files;

// An allowlist on eth0, and an administrator who is connected through it.
class Lockout : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    test::FakeHost host;
    Configuration configuration;
    StateDirectory state =
        StateDirectory::open(files.path("state"), std::chrono::milliseconds(0), {}).value();

    Lockout() {
        configuration.interfaces.push_back(
            {.name = "eth0", .default_action = SIEVE_ACTION_DROP, .sets = {"friends"}});
        SetConfiguration set;
        set.name = "friends";
        set.sources = {FileSpec{files.feed("friends.txt", {"192.0.2.1", "198.51.100.0/24"})}};
        set.feed = Files::quick();
        configuration.sets.push_back(std::move(set));
        connect("203.0.113.5");
    }
    void connect(const std::string& from, const std::string& interface = "eth0") {
        host.addresses = {test::host_address(from, "an administrator's session (TCP port 22)")};
        host.addresses[0].session_through = interface;
    }
    Result<CycleReport> run() {
        CycleOptions options;
        options.sandbox = test::in_process();
        return run_cycle(kernel, configuration, state, host, options, {});
    }
    bool goes() {
        const auto report = run();
        EXPECT_TRUE(report || !kernel.changed());
        return report.has_value();
    }
};

TEST_F(Lockout, IsRefused) {
    const auto report = run();
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, ErrorKind::bad_input);
    EXPECT_EQ(report.error().message,
              "refused: eth0 xdp: default = \"drop\", and no set that passes holds 203.0.113.5, an "
              "administrator's session (TCP port 22); put this address into the list of such a set, or set "
              "protect-host = false in the [[interface]]");
    EXPECT_FALSE(kernel.changed());
}

TEST_F(Lockout, AFriendMayStay) {
    for (const char* from : {"192.0.2.1", "198.51.100.77"}) {
        connect(from);
        EXPECT_TRUE(goes()) << from;
    }
}

// The list is new, so it is asked, and not the image of an earlier cycle.
TEST_F(Lockout, AFriendMayBeInAPrefix) {
    connect("198.51.100.77");
    EXPECT_TRUE(goes());
}

TEST_F(Lockout, AListThatLosesTheAdministratorIsRefused) {
    connect("192.0.2.1");
    ASSERT_TRUE(goes());
    kernel.steps.clear();
    files.feed("friends.txt", {"192.0.2.2", "198.51.100.0/24"});
    EXPECT_FALSE(goes());
    // What is in force already locks nobody out anew.
    files.feed("friends.txt", {"192.0.2.1", "198.51.100.0/24"});
    connect("203.0.113.5");
    EXPECT_TRUE(goes());
}

TEST_F(Lockout, OnlyWhereItHappens) {
    connect("203.0.113.5", "eth1");
    EXPECT_TRUE(goes());
    connect("203.0.113.5");
    kernel.running = {};
    configuration.interfaces[0].default_action = SIEVE_ACTION_PASS;
    EXPECT_TRUE(goes());
}

TEST_F(Lockout, CanBeMeant) {
    configuration.interfaces[0].protect_host = false;
    EXPECT_TRUE(goes());
}

TEST_F(Lockout, ASetThatDropsIsNoFriend) {
    configuration.sets[0].action = control::WantedAction{SIEVE_ACTION_COUNT, {}};
    connect("192.0.2.1");
    EXPECT_FALSE(goes());
}

} // namespace
} // namespace sieve::service
