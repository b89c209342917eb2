// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include <gtest/gtest.h>

#include "libsieve/service/reconcile/cycle.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"
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
        host.addresses[0].role = control::HostRole::session;
        host.addresses[0].interface = interface;
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
    expect_error(run(), ErrorKind::bad_input);
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

// What only the filters themselves can tell: the very table is asked before it goes live.
class TableLockout : public Lockout {
  protected:
    TableLockout() {
        configuration.interfaces[0].default_action = SIEVE_ACTION_PASS;
        configuration.sets[0].feed.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
        files.feed("friends.txt", {"203.0.113.5 22"});
        host.addresses = {test::host_address("203.0.113.5", "an administrator's session (TCP port 22)")};
        session().role = control::HostRole::session;
        session().interface = "eth0";
        session().ours = test::host_address("192.0.2.254").address;
        session().our_port = 22;
        session().their_port = 50000;
    }
    HostAddress& session() { return host.addresses[0]; }
};

// A friend whose list is for other ports is no help.
TEST_F(TableLockout, AFriendOfAnotherPortDoesNotHelp) {
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    configuration.sets[0].feed.fields = SIEVE_FIELD_SRC;
    files.feed("friends.txt", {"203.0.113.5"});
    const auto& dport = control::condition_parts()[SIEVE_PART_DPORT];
    ASSERT_TRUE(set_condition(configuration.sets[0].condition, dport, "80"));
    expect_error(run(), ErrorKind::bad_input);
    ASSERT_TRUE(set_condition(configuration.sets[0].condition, dport, "22"));
    EXPECT_TRUE(goes());
}

TEST_F(TableLockout, TheFlowOfASessionIsAskedAbout) {
    CycleOptions options;
    options.on_failure = OnFailure::go_on;
    options.sandbox = test::in_process();
    const auto report = run_cycle(kernel, configuration, state, host, options, {});
    ASSERT_TRUE(report);
    EXPECT_FALSE(kernel.changed());
    ASSERT_EQ(report->hooks.size(), 1U);
    EXPECT_TRUE(report->hooks[0].locks_out);
    ASSERT_TRUE(report->hooks[0].error);
    expect_error(*report->hooks[0].error, ErrorKind::bad_input);
    // The set's new list is refused by this guard, and is no last good list.
    EXPECT_EQ(report->sets[0].outcome, SetOutcome::refused);
    EXPECT_EQ(report->sets[0].guard, Guard::lockout);
    EXPECT_FALSE(report->sets[0].last_good);
    // Another port of the same host may be taken.
    files.feed("friends.txt", {"203.0.113.5 25"});
    EXPECT_TRUE(goes());
    EXPECT_TRUE(kernel.changed());
}

TEST_F(TableLockout, ASetMayBeExempt) {
    configuration.sets[0].guards.protect_host = false;
    EXPECT_TRUE(goes());
    EXPECT_TRUE(kernel.changed());
}

TEST_F(TableLockout, AnInterfaceMayBeExempt) {
    configuration.interfaces[0].protect_host = false;
    EXPECT_TRUE(goes());
    EXPECT_TRUE(kernel.changed());
}

// What the interface lists must pass by default, too, with or without the host's own addresses.
TEST_F(TableLockout, AListedAddressMustPass) {
    host.addresses.clear();
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    configuration.interfaces[0].protect = {"198.51.100.6-198.51.100.7"};
    configuration.sets[0].feed.fields = SIEVE_FIELD_SRC;
    files.feed("friends.txt", {"192.0.2.1", "198.51.100.6"});
    for (const bool protect_host : {true, false}) {
        configuration.interfaces[0].protect_host = protect_host;
        expect_error(run(), ErrorKind::bad_input);
        EXPECT_FALSE(kernel.changed());
    }
    files.feed("friends.txt", {"192.0.2.1", "198.51.100.0/24"});
    EXPECT_TRUE(goes());
    EXPECT_TRUE(kernel.changed());
}

// Without questions to sources, as on a reload: the table that changes is asked all the same.
TEST_F(TableLockout, ADefaultThatLocksOutIsRefusedWithoutAskingSources) {
    session().address = test::host_address("203.0.113.9").address;
    ASSERT_TRUE(goes());
    kernel.steps.clear();
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    CycleOptions options;
    options.ask = Ask::nothing;
    options.on_failure = OnFailure::go_on;
    options.sandbox = test::in_process();
    const auto report = run_cycle(kernel, configuration, state, host, options, {});
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->hooks[0].plan.holds_table());
    expect_says(report->hooks[0].trouble());
    EXPECT_FALSE(kernel.changed()) << "nor does the set, which names no action, become one that passes";
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_PASS);
}

} // namespace
} // namespace sieve::service
