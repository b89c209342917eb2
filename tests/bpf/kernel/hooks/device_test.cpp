// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the kernel says of real interfaces; `ip` and ethtool's requests set them up.
#include "libsieve/kernel/host/device.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <future>
#include <string>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/own_network.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/programs/bpf_object.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

Device device(const std::string& name) {
    return value_or_fail(read_device(value_or_fail(find_interface(name))));
}

// Linux reports the features of drivers since 6.3.
bool kernel_tells_features() {
    utsname system{};
    int major = 0, minor = 0;
    return ::uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 3));
}

// `ethtool -K NAME tx on|off`
bool take_checksums(const std::string& name, bool on) {
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
    ethtool_value value{.cmd = ETHTOOL_STXCSUM, .data = on ? 1U : 0U};
    request.ifr_data = reinterpret_cast<char*>(&value);
    return ::ioctl(socket.get(), SIOCETHTOOL, &request) == 0;
}

TEST(Device, UpAndCarrier) {
    in_own_network([] {
        ASSERT_TRUE(ip("link add in mtu 1400 type veth peer name out"));
        Device in = device("in");
        EXPECT_FALSE(in.up);
        EXPECT_FALSE(is_up(value_or_fail(find_interface("in")).index));
        EXPECT_EQ(in.mtu, 1400);
        EXPECT_EQ(in.link, SIEVE_LINK_ETHERNET);
        ASSERT_TRUE(ip("link set in up"));
        in = device("in");
        EXPECT_TRUE(in.up);
        EXPECT_FALSE(in.carrier) << "the other end is down";
        EXPECT_TRUE(is_up(value_or_fail(find_interface("in")).index));
        ASSERT_TRUE(ip("link set out up"));
        EXPECT_TRUE(device("in").carrier);
        EXPECT_FALSE(read_device({"gone", 99'999}));
        EXPECT_TRUE(is_up(99'999)) << "nothing is known to be down";
    });
}

// A veth sends what native XDP redirects while the other end polls. An end with a program polls.
TEST(Device, WhoSendsWhatNativeXdpRedirects) {
    in_own_network([] {
        ASSERT_TRUE(ip("link add in type veth peer name out") && ip("link set in up") &&
                    ip("link set out up"));
        ASSERT_EQ(device("in").xdp.has_value(), kernel_tells_features());
        if (!kernel_tells_features()) return;
        EXPECT_TRUE(device("in").xdp->native);
        EXPECT_FALSE(device("in").xdp->sends);
        EXPECT_FALSE(device("lo").xdp->native);
        EXPECT_FALSE(device("lo").xdp->sends);
        const BpfObject object = value_or_fail(BpfObject::load({.point = HookPoint::xdp}));
        const Hook out = value_or_fail(read_hook(value_or_fail(find_interface("out"))));
        const auto attached = attach(out, object, {.mode = ModeChoice::native});
        ASSERT_TRUE(attached) << attached.error().message;
        EXPECT_TRUE(device("in").xdp->sends);
        EXPECT_TRUE(device("in").xdp->sends_long);
        EXPECT_FALSE(device("out").xdp->sends);
    });
}

TEST(Device, WhereUnfinishedChecksumsComeFrom) {
    in_own_network([] {
        ASSERT_TRUE(ip("link add in type veth peer name out"));
        EXPECT_TRUE(device("in").unfinished_checksums);
        ASSERT_TRUE(take_checksums("in", false));
        EXPECT_TRUE(device("in").unfinished_checksums) << "what `in` itself sends does not matter";
        ASSERT_TRUE(take_checksums("out", false));
        EXPECT_FALSE(device("in").unfinished_checksums);
        ASSERT_TRUE(take_checksums("out", true));
        EXPECT_TRUE(device("in").unfinished_checksums);
        EXPECT_FALSE(device("lo").unfinished_checksums);
    });
}

// The other end's settings cannot be read from here.
TEST(Device, AnEndInAnotherNamespaceIsNotTrusted) {
    in_own_network([] {
        ASSERT_TRUE(ip("link add in type veth peer name out"));
        ASSERT_TRUE(take_checksums("out", false));
        ASSERT_FALSE(device("in").unfinished_checksums);
        std::promise<pid_t> elsewhere;
        std::promise<void> done;
        std::thread other([&] {
            EXPECT_EQ(::unshare(CLONE_NEWNET), 0);
            elsewhere.set_value(::gettid());
            done.get_future().wait();
        });
        const std::uint32_t index = value_or_fail(find_interface("out")).index;
        EXPECT_TRUE(ip(fmt::format("link set out netns {}", elsewhere.get_future().get())));
        // Another interface here has that end's index.
        EXPECT_TRUE(ip(fmt::format("link add decoy index {} type veth peer name decoys", index)));
        EXPECT_TRUE(take_checksums("decoy", false));
        EXPECT_TRUE(device("in").unfinished_checksums);
        done.set_value();
        other.join();
    });
}

TEST(Device, BareIp) {
    in_own_network([] {
        if (!ip("tuntap add dev bare mode tun")) GTEST_SKIP() << "this kernel has no tun";
        EXPECT_EQ(device("bare").link, SIEVE_LINK_IP);
        EXPECT_TRUE(device("bare").unfinished_checksums) << "a virtual machine may be behind it";
        EXPECT_FALSE(device("bare").tap);
        EXPECT_EQ(value_or_fail(interface_link(value_or_fail(find_interface("bare")))), SIEVE_LINK_IP);
        ASSERT_TRUE(ip("tuntap add dev whole mode tap"));
        EXPECT_TRUE(device("whole").tap);
        ASSERT_TRUE(ip("link add in type veth peer name out"));
        EXPECT_FALSE(device("in").tap);
    });
}

// The writer's word decides what Linux makes of such a packet, and no program can read it.
TEST(Device, ATunWhoseWritersStateTheProtocolIsRefused) {
    in_own_network([] {
        if (!ip("tuntap add dev told mode tun pi")) GTEST_SKIP() << "this kernel has no tun";
        EXPECT_EQ(device("told").link, std::nullopt);
        const auto link = interface_link(value_or_fail(find_interface("told")));
        ASSERT_FALSE(link);
        EXPECT_NE(link.error().message.find("IFF_NO_PI"), std::string::npos) << link.error().message;
        ASSERT_TRUE(ip("tuntap add dev whole mode tap pi"));
        EXPECT_EQ(value_or_fail(interface_link(value_or_fail(find_interface("whole")))), SIEVE_LINK_ETHERNET)
            << "an Ethernet header states the type again";
    });
}

} // namespace
} // namespace sieve::kernel
