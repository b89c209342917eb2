// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Finds the hook that a command means when there are several.
#include "libsieve/control/access/in_force.hpp"

#include <gtest/gtest.h>

#include "libsieve/control/table/remove.hpp"
#include "libsieve/control/table/unload.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using kernel::HookPoint;

class InForce : public testing::Test {
  protected:
    // A program at that hook, with these sets.
    void run(HookPoint point, const std::vector<std::string>& sets) {
        auto& running = fake.at(point);
        running.ours = true;
        running.program = 50 + static_cast<std::uint32_t>(point);
        for (const std::string& set : sets) {
            kernel::SetInForce live;
            live.name = set;
            running.table.sets.push_back(live);
        }
    }

    void expect_at(const HookName& name, const std::string& set, HookPoint point) {
        const auto hook = find_ours(fake, name, set);
        ASSERT_TRUE(hook) << hook.error().message;
        EXPECT_EQ(hook->point, point) << set;
    }

    void expect_refused(const HookName& name, const std::string& set, ErrorKind kind) {
        const auto hook = find_ours(fake, name, set);
        ASSERT_FALSE(hook) << set;
        EXPECT_EQ(hook.error().kind, kind) << hook.error().message;
    }

    test::FakeKernel fake;
    const HookName eth0{.interface = "eth0"};
};

TEST_F(InForce, TheOnlyHookNeedsNoName) {
    expect_refused(eth0, "", ErrorKind::not_attached);
    run(HookPoint::egress, {"c2"});
    expect_at(eth0, "", HookPoint::egress);
    expect_at(eth0, "c2", HookPoint::egress);
    expect_at(eth0, "other", HookPoint::egress); // and there it is missed
    expect_refused({.interface = "eth0", .point = HookPoint::xdp}, "", ErrorKind::not_attached);
}

TEST_F(InForce, OfSeveralHooksTheSetDecides) {
    run(HookPoint::xdp, {"bad", "both"});
    run(HookPoint::egress, {"c2", "both"});
    expect_at(eth0, "bad", HookPoint::xdp);
    expect_at(eth0, "c2", HookPoint::egress);
    expect_refused(eth0, "both", ErrorKind::several_hooks);
    expect_refused(eth0, "none", ErrorKind::several_hooks);
    expect_refused(eth0, "", ErrorKind::several_hooks);
    expect_at({.interface = "eth0", .point = HookPoint::egress}, "both", HookPoint::egress);
    const auto refused = find_ours(fake, eth0);
    EXPECT_EQ(refused.error().facts.hooks, (std::vector<std::string>{"xdp", "egress"}));
    expect_error(refused, ErrorKind::several_hooks);
}

TEST_F(InForce, AChangeReachesOneHookOnly) {
    run(HookPoint::xdp, {"bad", "both"});
    run(HookPoint::ingress, {"both", "more"});
    ASSERT_TRUE(remove(fake, eth0, "more", {}));
    EXPECT_EQ(fake.at(HookPoint::xdp).table.sets.size(), 2U);
    EXPECT_EQ(fake.at(HookPoint::ingress).table.sets.size(), 1U);
    EXPECT_FALSE(unload(fake, eth0, {}));
    const auto unloaded = unload(fake, {.interface = "eth0", .point = HookPoint::xdp}, {});
    ASSERT_TRUE(unloaded) << unloaded.error().message;
    EXPECT_EQ(unloaded->program_id, 50U);
    EXPECT_EQ(unloaded->point, HookPoint::xdp);
    EXPECT_TRUE(fake.at(HookPoint::ingress).ours);
    EXPECT_TRUE(unload(fake, eth0, {}));
    EXPECT_FALSE(fake.at(HookPoint::ingress).ours);
}

} // namespace
} // namespace sieve::control
