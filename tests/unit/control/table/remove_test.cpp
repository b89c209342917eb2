// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/remove.hpp"

#include <gtest/gtest.h>

#include "front-end/console/exit_code.hpp"
#include "libsieve/control/table/unload.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
const HookName eth0{.interface = "eth0"};

TEST(Remove, TakesOneSetAndKeepsTheOthersInOrder) {
    FakeKernel kernel;
    for (const char* name : {"a", "b", "c"}) kernel.put(name);
    const auto left = remove(kernel, eth0, "b", {});
    ASSERT_TRUE(left) << left.error().message;
    EXPECT_EQ(left->left, 2U);
    EXPECT_EQ(left->point, kernel::HookPoint::xdp);
    ASSERT_EQ(kernel.running.table.sets.size(), 2U);
    EXPECT_EQ(kernel.running.table.sets[0].name, "a");
    EXPECT_EQ(kernel.running.table.sets[0].map_id, 100U);
    EXPECT_EQ(kernel.running.table.sets[1].name, "c");
    EXPECT_EQ(kernel.running.table.sets[1].map_id, 102U);
}

TEST(Remove, SaysWhichHookHadTheSet) {
    FakeKernel kernel;
    kernel.put("a");
    kernel.put("b");
    kernel.at_tc[kernel::HookPoint::egress] = kernel.running;
    kernel.at_tc[kernel::HookPoint::egress].table.sets.erase(
        kernel.at_tc[kernel::HookPoint::egress].table.sets.begin());
    kernel.running.table.sets.pop_back();
    const auto removed = remove(kernel, eth0, "b", {});
    ASSERT_TRUE(removed) << removed.error().message;
    EXPECT_EQ(removed->point, kernel::HookPoint::egress);
    EXPECT_EQ(removed->left, 0U);
}

TEST(Remove, OfASetThatIsNotThere) {
    FakeKernel kernel;
    kernel.running.ours = true;
    expect_error(remove(kernel, eth0, "b", {}), ErrorKind::no_such_set);
    kernel.put("a");
    expect_error(remove(kernel, eth0, "b", {}), ErrorKind::no_such_set);
    EXPECT_FALSE(kernel.changed());
    kernel.refuse("lock", ErrorKind::busy);
    EXPECT_EQ(remove(kernel, eth0, "a", {}).error().kind, ErrorKind::busy);
    EXPECT_FALSE(kernel.changed());
}

TEST(Remove, TheLastFriendNeedsForce) {
    FakeKernel kernel;
    kernel.put("friends", SIEVE_ACTION_PASS);
    kernel.put("bad", SIEVE_ACTION_DROP);
    kernel.running.table.default_action = SIEVE_ACTION_DROP;
    const auto refused = remove(kernel, eth0, "friends", {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::wants_force);
    EXPECT_FALSE(kernel.changed());
    EXPECT_TRUE(remove(kernel, eth0, "bad", {})) << "that one lets nobody in";
    EXPECT_TRUE(remove(kernel, eth0, "friends", {}, {}, true));
    kernel.put("friends", SIEVE_ACTION_PASS);
    kernel.running.table.default_action = SIEVE_ACTION_PASS;
    EXPECT_TRUE(remove(kernel, eth0, "friends", {})) << "everybody passes anyway";
}

// A failure after the change is no refusal: the error, and so the exit code, says that the change was made.
TEST(Remove, AndUnloadSayThatTheyAreDoneWhenWhatFollowsFails) {
    FakeKernel kernel;
    kernel.put("a");
    kernel.refuse("replace", ErrorKind::unfinished);
    kernel.refuse("detach", ErrorKind::unfinished);
    const auto removed = remove(kernel, eth0, "a", {});
    ASSERT_FALSE(removed);
    EXPECT_TRUE(kernel.running.table.sets.empty());
    EXPECT_EQ(removed.error().kind, ErrorKind::unfinished);
    EXPECT_EQ(exit_code(removed.error().kind), Exit::incomplete);
    EXPECT_EQ(kernel.steps.back(), "unlock");
    const auto unloaded = unload(kernel, eth0, {});
    ASSERT_FALSE(unloaded);
    EXPECT_FALSE(kernel.running.ours);
    EXPECT_EQ(unloaded.error().kind, ErrorKind::unfinished);
    EXPECT_EQ(kernel.steps.back(), "unlock");
}

TEST(Unload, TakesOurProgramOfAnyVersionButNobodyElses) {
    for (const bool other_version : {false, true}) {
        FakeKernel kernel;
        kernel.running = {.ours = true, .other_version = other_version, .program = 5, .table = {}};
        const auto id = unload(kernel, eth0, {});
        ASSERT_TRUE(id) << id.error().message;
        EXPECT_EQ(id->program_id, 5U);
        EXPECT_EQ(kernel.steps, (std::vector<std::string>{"lock", "detach", "unlock"}));
    }
    FakeKernel kernel;
    kernel.running = {.foreign = true, .program = 6, .table = {}};
    const auto refused = unload(kernel, eth0, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::not_attached);
    EXPECT_EQ(refused.error().facts.program_id, 6U);
    EXPECT_FALSE(kernel.changed());
}

} // namespace
} // namespace sieve::control
