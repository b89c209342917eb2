// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/redirection.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "libsieve/control/table/apply.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using kernel::HookPoint;
using kernel::Mode;
using kernel::ModeChoice;
using test::FakeKernel;
using test::Files;

class Redirection : public testing::Test {
  protected:
    FakeKernel kernel;

    static std::vector<SetSpec> to(const std::string& target) {
        SetSpec spec;
        spec.name = "a";
        spec.action = WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, target};
        return {spec};
    }
    static RedirectSource at(HookPoint point, Mode mode = Mode::native) {
        return {.interface = {"eth0", 7}, .point = point, .mode = mode};
    }
    void refused(const RedirectSource& source, ErrorKind kind, const std::string& target = "eth1") {
        expect_error(check_targets(kernel, source, to(target)), kind);
    }
    std::vector<WarningKind> warned(const RedirectSource& source, const std::string& target = "eth1") {
        std::vector<WarningKind> kinds;
        for (const Warning& warning : target_warnings(kernel, source, to(target)))
            kinds.push_back(warning.kind);
        return kinds;
    }
};

using Kinds = std::vector<WarningKind>;

TEST_F(Redirection, AnOrdinaryTargetNeedsNoWord) {
    for (const HookPoint point : kernel::all_hook_points)
        for (const Mode mode : {Mode::native, Mode::skb}) {
            EXPECT_TRUE(check_targets(kernel, at(point, mode), to("eth1")));
            EXPECT_EQ(warned(at(point, mode)), Kinds{});
            EXPECT_EQ(warned(at(point, mode), "cpu:3"), Kinds{});
        }
}

TEST_F(Redirection, TheInterfaceItselfIsRefusedAtEveryHook) {
    for (const HookPoint point : kernel::all_hook_points)
        refused(at(point), ErrorKind::invalid_request, "eth0");
}

TEST_F(Redirection, ATargetThatIsDownIsRefusedAtEveryHook) {
    kernel.eth1.up = false;
    for (const HookPoint point : kernel::all_hook_points) refused(at(point), ErrorKind::kernel_refused);
}

TEST_F(Redirection, OneWithoutACarrierMayGetIt) {
    kernel.eth1.carrier = false;
    for (const HookPoint point : kernel::all_hook_points) {
        EXPECT_TRUE(check_targets(kernel, at(point), to("eth1")));
        EXPECT_EQ(warned(at(point)), Kinds{WarningKind::no_carrier});
    }
}

// Only the driver itself can send what native XDP redirects. The generic hook and tc send as the stack does.
TEST_F(Redirection, InNativeModeTheDriverMustSend) {
    kernel.eth1.xdp->sends = false;
    refused(at(HookPoint::xdp), ErrorKind::no_native_mode);
    EXPECT_TRUE(check_targets(kernel, at(HookPoint::xdp, Mode::skb), to("eth1")));
    EXPECT_TRUE(check_targets(kernel, at(HookPoint::ingress), to("eth1")));
    EXPECT_TRUE(check_targets(kernel, at(HookPoint::egress), to("eth1")));
}

TEST_F(Redirection, AKernelThatDoesNotTellIsNoReasonToRefuse) {
    kernel.eth1.xdp.reset();
    EXPECT_TRUE(check_targets(kernel, at(HookPoint::xdp), to("eth1")));
    EXPECT_EQ(warned(at(HookPoint::xdp)), Kinds{WarningKind::sending_unknown});
    EXPECT_EQ(warned(at(HookPoint::xdp, Mode::skb)), Kinds{});
    EXPECT_EQ(warned(at(HookPoint::ingress)), Kinds{});
}

TEST_F(Redirection, PacketsMustBeginAsTheTargetsDo) {
    kernel.eth1.link = SIEVE_LINK_IP;
    refused(at(HookPoint::xdp, Mode::skb), ErrorKind::kernel_refused);
    EXPECT_TRUE(check_targets(kernel, at(HookPoint::egress), to("eth1"))) << "tc takes the header away";
    std::swap(kernel.eth0, kernel.eth1);
    refused(at(HookPoint::xdp, Mode::skb), ErrorKind::kernel_refused);
    refused(at(HookPoint::egress), ErrorKind::kernel_refused);
    kernel.eth1.link.reset(); // GRE: not known
    EXPECT_TRUE(check_targets(kernel, at(HookPoint::egress), to("eth1")));
}

TEST_F(Redirection, LongerPacketsThanTheTargetTakes) {
    kernel.eth1.mtu = 1499;
    EXPECT_EQ(warned(at(HookPoint::xdp)), Kinds{WarningKind::smaller_mtu});
    EXPECT_EQ(warned(at(HookPoint::xdp, Mode::skb)), Kinds{WarningKind::smaller_mtu});
    EXPECT_EQ(warned(at(HookPoint::egress)), Kinds{}) << "tc redirects whatever length";
    kernel.eth1.mtu = 1501;
    EXPECT_EQ(warned(at(HookPoint::xdp)), Kinds{});
}

TEST_F(Redirection, FramesOfSeveralBuffers) {
    kernel.eth1.xdp->sends_long = false;
    EXPECT_EQ(warned(at(HookPoint::xdp)), Kinds{});
    kernel.eth0.mtu = kernel.eth1.mtu = 9000;
    EXPECT_EQ(warned(at(HookPoint::xdp)), Kinds{WarningKind::one_buffer});
    EXPECT_EQ(warned(at(HookPoint::xdp, Mode::skb)), Kinds{});
}

// An XDP frame has no room for the mark that a checksum is still to be computed.
TEST_F(Redirection, UnfinishedChecksumsAreLostInNativeModeOnly) {
    kernel.eth0.unfinished_checksums = true;
    for (const char* target : {"cpu:3", "eth1"}) {
        EXPECT_EQ(warned(at(HookPoint::xdp), target), Kinds{WarningKind::unfinished_checksums}) << target;
        EXPECT_EQ(warned(at(HookPoint::xdp, Mode::skb), target), Kinds{}) << target;
        EXPECT_EQ(warned(at(HookPoint::ingress), target), Kinds{}) << target;
    }
    SetSpec drop;
    drop.action = WantedAction{SIEVE_ACTION_DROP, {}};
    EXPECT_TRUE(target_warnings(kernel, at(HookPoint::xdp), {{drop, SetSpec{}}}).empty())
        << "nothing is redirected";
}

// The driver of a tap mixes both ways of running a program.
TEST_F(Redirection, ATapLosesPacketsOnTheWayToACpu) {
    kernel.eth0.tap = true;
    EXPECT_EQ(warned(at(HookPoint::xdp), "cpu:3"), Kinds{WarningKind::tap_to_cpu});
    EXPECT_EQ(warned(at(HookPoint::xdp), "eth1"), Kinds{});
    EXPECT_EQ(warned(at(HookPoint::xdp, Mode::skb), "cpu:3"), Kinds{});
}

TEST_F(Redirection, ExpectsTheModeThatRunsElseTheChosenElseTheDrivers) {
    const auto expected = [&](ModeChoice choice) {
        const auto hook = kernel.read_hook({"eth0", 7}, HookPoint::xdp);
        return expected_mode(kernel, *hook, choice).value();
    };
    EXPECT_EQ(expected(ModeChoice::automatic), Mode::native);
    EXPECT_EQ(expected(ModeChoice::skb), Mode::skb);
    kernel.eth0.xdp->native = false;
    EXPECT_EQ(expected(ModeChoice::automatic), Mode::skb);
    EXPECT_EQ(expected(ModeChoice::native), Mode::native);
    kernel.eth0.xdp.reset();
    EXPECT_EQ(expected(ModeChoice::automatic), Mode::native) << "the worse of the two, if nobody tells";
    kernel.running = {.ours = true, .mode = Mode::skb, .program = 40, .table = {}};
    EXPECT_EQ(expected(ModeChoice::automatic), Mode::skb);
}

// The whole way, starting from a wanted table.
class ApplyRedirection : public Redirection {
  protected:
    Files files;

    TableSpec table(const std::string& target) const {
        TableSpec spec;
        spec.interface = "eth0";
        spec.sets = {Files::set("a", files.feed("a", {"192.0.2.1"}))};
        spec.sets[0].action = WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, target};
        return spec;
    }
};

TEST_F(ApplyRedirection, RefusesBeforeAnyWork) {
    kernel.eth1.xdp->sends = false;
    for (const auto& [target, kind] :
         {std::pair{"eth0", ErrorKind::invalid_request}, {"eth1", ErrorKind::no_native_mode}}) {
        const auto applied = apply(kernel, table(target), {});
        ASSERT_FALSE(applied) << target;
        EXPECT_EQ(applied.error().kind, kind) << applied.error().message;
        EXPECT_TRUE(kernel.steps.empty()) << target;
    }
    TableSpec generic = table("eth1");
    generic.mode = ModeChoice::skb;
    EXPECT_TRUE(apply(kernel, generic, {}));
}

TEST_F(ApplyRedirection, RefusesATargetThatWentDownMeanwhile) {
    kernel.once("lock", [this] { kernel.eth1.up = false; });
    const auto applied = apply(kernel, table("eth1"), {});
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().kind, ErrorKind::kernel_refused);
    EXPECT_FALSE(kernel.changed());
    EXPECT_EQ(kernel.steps.back(), "unlock");
}

TEST_F(ApplyRedirection, WarnsByTheModeThatItGot) {
    kernel.eth0.unfinished_checksums = true;
    const auto native = apply(kernel, table("cpu:3"), {});
    ASSERT_TRUE(native) << native.error().message;
    ASSERT_EQ(native->warnings.size(), 1U);
    EXPECT_EQ(native->warnings[0].kind, WarningKind::unfinished_checksums);
    EXPECT_EQ(native->warnings[0].message.find("ethtool"), std::string::npos) << "advice is the front end's";
    kernel.running = {};
    TableSpec generic = table("cpu:3");
    generic.mode = ModeChoice::skb;
    const auto skb = apply(kernel, generic, {});
    ASSERT_TRUE(skb) << skb.error().message;
    EXPECT_TRUE(skb->warnings.empty());
}

} // namespace
} // namespace sieve::control
