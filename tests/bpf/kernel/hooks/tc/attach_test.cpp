// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/tc/attach.hpp"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/own_network.hpp"
#include "bpf/packet.hpp"
#include "libsieve/kernel/hooks/noting.hpp"
#include "libsieve/kernel/hooks/tc/filters.hpp"
#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/kernel/maps/stats.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

constexpr HookPoint tc_points[] = {HookPoint::ingress, HookPoint::egress};

bool tc(const std::string& arguments) {
    return std::system(("tc " + arguments + " >/dev/null 2>&1").c_str()) == 0;
}

// An end of a veth pair, up, named "in". Only the test's own packets flow, because the kernel's IPv6 is down.
Interface make_veth(int mtu = 1500) {
    std::ofstream disable_ipv6("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    EXPECT_TRUE(disable_ipv6 << 1 << std::flush);
    EXPECT_TRUE(ip(fmt::format("link add in mtu {0} type veth peer name out mtu {0}", mtu)));
    EXPECT_TRUE(ip("link set in up") && ip("link set out up"));
    return value_or_fail(find_interface("in"));
}

BpfObject load(HookPoint point) {
    return value_or_fail(BpfObject::load({.point = point}));
}

Hook hook_of(const Interface& interface, HookPoint point) {
    return value_or_fail(read_hook(interface, point));
}

// A foreign program: it lets the next program decide, or ends the classification.
UniqueFd foreign_program(std::int32_t action = TC_ACT_UNSPEC) {
    const std::array<bpf_insn, 2> code{
        bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = action},
        bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    return UniqueFd(
        bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "foreigner", "GPL", code.data(), code.size(), nullptr));
}

// Adds a filter with that program; 0 or a negative errno value.
int add_filter(const Interface& interface, HookPoint point, int program, std::uint32_t priority) {
    bpf_tc_hook hook{};
    hook.sz = sizeof(hook);
    hook.ifindex = static_cast<int>(interface.index);
    hook.attach_point = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
    (void)bpf_tc_hook_create(&hook);
    hook.attach_point = point == HookPoint::ingress ? BPF_TC_INGRESS : BPF_TC_EGRESS;
    LIBBPF_OPTS(bpf_tc_opts, options);
    options.prog_fd = program;
    options.priority = priority;
    return bpf_tc_attach(&hook, &options);
}

std::vector<std::uint32_t> priorities(const Interface& interface, HookPoint point) {
    std::vector<std::uint32_t> found;
    for (const TcFilter& filter : value_or_fail(tc::list_filters(interface, point)))
        found.push_back(filter.priority);
    return found;
}

TEST(TcAttach, AtBothHooksBesideXdpAndAway) {
    in_own_network([] {
        const Interface in = make_veth();
        EXPECT_FALSE(hook_of(in, HookPoint::egress).attached);
        std::vector<std::uint32_t> ids;
        for (const HookPoint point : all_hook_points) {
            const auto attached = attach(hook_of(in, point), load(point), {});
            ASSERT_TRUE(attached) << attached.error().message;
            EXPECT_EQ(attached->hook.point, point);
            ids.push_back(attached->hook.ours->id);
        }
        for (std::size_t i = 0; i < ids.size(); i++) {
            const HookPoint point = all_hook_points[i];
            const auto found = find_ours("in", point);
            ASSERT_TRUE(found) << found.error().message;
            EXPECT_EQ(found->ours->id, ids[i]);
            EXPECT_EQ(found->ours->name, program_name(point));
            EXPECT_TRUE(found->instance);
            if (point == HookPoint::xdp) continue;
            ASSERT_NE(found->filter(), nullptr);
            EXPECT_EQ(found->filter()->priority, DispatcherRank{}.priority);
            EXPECT_EQ(found->filter()->handle, tc::our_handle);
            EXPECT_TRUE(found->filter()->direct_action);
        }
        for (const HookPoint point : all_hook_points) {
            const auto done = detach(hook_of(in, point));
            ASSERT_TRUE(done) << done.error().message;
            const auto gone = find_ours("in", point);
            ASSERT_FALSE(gone);
            EXPECT_EQ(gone.error().kind, ErrorKind::not_attached);
            if (point == HookPoint::ingress) {
                EXPECT_TRUE(find_ours("in", HookPoint::egress));
            }
        }
    });
}

TEST(TcAttach, OtherFiltersStay) {
    for (const HookPoint point : tc_points)
        in_own_network([&] {
            const Interface in = make_veth();
            const UniqueFd before = foreign_program(), after = foreign_program(), same = foreign_program();
            ASSERT_EQ(add_filter(in, point, before.get(), 7), 0);
            ASSERT_EQ(add_filter(in, point, after.get(), 60), 0);
            ASSERT_EQ(add_filter(in, point, same.get(), 50), 0);
            const auto attached = attach(hook_of(in, point), load(point), {});
            ASSERT_TRUE(attached) << attached.error().message;
            EXPECT_EQ(priorities(in, point), (std::vector<std::uint32_t>{7, 50, 50, 60}));
            const Hook hook = value_or_fail(find_ours("in", point));
            EXPECT_FALSE(hook.foreign());
            EXPECT_EQ(hook.filters.size(), 4U);
            ASSERT_TRUE(detach(hook));
            EXPECT_EQ(priorities(in, point), (std::vector<std::uint32_t>{7, 50, 60}));
            // A caller that looked before sees that the program has gone.
            EXPECT_FALSE(detach(hook));
            EXPECT_EQ(priorities(in, point), (std::vector<std::uint32_t>{7, 50, 60}));
        });
}

// All filters of another kind than BPF that share a priority are one.
TEST(TcAttach, FiltersOfEveryKindAreListed) {
    in_own_network([] {
        const Interface in = make_veth();
        ASSERT_TRUE(tc("qdisc add dev in clsact"));
        ASSERT_TRUE(tc("filter add dev in egress pref 5 protocol all bpf da bytecode '1,6 0 0 0,'"));
        for (const char* match : {"ip dst 10.0.0.1", "ip dst 10.0.0.2"})
            ASSERT_TRUE(tc(fmt::format("filter add dev in egress pref 7 protocol ip u32 match {}", match)));
        ASSERT_TRUE(tc("filter add dev in egress pref 60 protocol all u32 match u32 0 0"));
        ASSERT_TRUE(attach(hook_of(in, HookPoint::egress), load(HookPoint::egress), {}));
        const Hook hook = hook_of(in, HookPoint::egress);
        std::vector<std::string> found;
        for (const TcFilter& filter : hook.filters)
            found.push_back(fmt::format("{} {} {}", filter.kind, filter.priority, filter.program_id != 0));
        EXPECT_EQ(found,
                  (std::vector<std::string>{"bpf 5 false", "u32 7 false", "bpf 50 true", "u32 60 false"}));
        EXPECT_EQ(filters_text(hook.filters_before()), "bpf, priority 5, then u32, priority 7");
        const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
        EXPECT_EQ(filters_text(value_or_fail(attach_noting(in, memory)).before),
                  "bpf, priority 5, then u32, priority 7, then u32, priority 60");
    });
}

TEST(TcAttach, WhatTheTcToolAttachedIsFoundAndTakenAway) {
    const auto object = std::filesystem::absolute("build/xdp_sieve_tc.bpf.o");
    ASSERT_TRUE(std::filesystem::exists(object)) << "run from the project's folder";
    for (const HookPoint point : tc_points)
        in_own_network([&] {
            const Interface in = make_veth();
            ASSERT_TRUE(tc("qdisc add dev in clsact"));
            ASSERT_TRUE(tc(fmt::format("filter add dev in {0} bpf da obj {1} sec tc/{0}",
                                       hook_point_name(point), object.string())));
            const auto map = map_of(image_of({"10.0.0.1"}));
            const Hook hook = value_or_fail(find_ours("in", point));
            EXPECT_EQ(hook.ours->name, program_name(point));
            ASSERT_TRUE(SetTable(*hook.instance)
                            .replace({SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}}}));
            EXPECT_EQ(SetTable(*value_or_fail(find_ours("in", point)).instance).read().sets.at(0).map_id,
                      map.id());
            ASSERT_TRUE(detach(hook));
            EXPECT_FALSE(find_ours("in", point));
            // Without `da`, the program's return value would have no effect.
            ASSERT_TRUE(tc(fmt::format("filter add dev in {0} bpf obj {1} sec tc/{0}", hook_point_name(point),
                                       object.string())));
            const auto useless = find_ours("in", point);
            ASSERT_FALSE(useless);
            EXPECT_EQ(useless.error().kind, ErrorKind::other_version);
            EXPECT_NE(useless.error().message.find("direct-action"), std::string::npos)
                << useless.error().message;
        });
}

TEST(TcAttach, ARaceEndsInARefusal) {
    in_own_network([] {
        const Interface in = make_veth();
        const Hook looked_free = hook_of(in, HookPoint::egress);
        const auto first = attach(looked_free, load(HookPoint::egress), {});
        ASSERT_TRUE(first) << first.error().message;
        // At the same priority the kernel itself refuses the handle. At another priority, the check
        // afterwards refuses it.
        for (const std::uint32_t priority : {50U, 51U}) {
            const auto second =
                attach(looked_free, load(HookPoint::egress), {.rank = {.priority = priority}});
            ASSERT_FALSE(second) << priority;
            EXPECT_EQ(second.error().kind, ErrorKind::kernel_refused);
            EXPECT_EQ(priorities(in, HookPoint::egress), std::vector<std::uint32_t>{50});
            EXPECT_EQ(value_or_fail(find_ours("in", HookPoint::egress)).ours->id, first->hook.ours->id);
        }
    });
}

TEST(TcAttach, APriorityOfAnotherKindIsRefused) {
    in_own_network([] {
        const Interface in = make_veth();
        ASSERT_TRUE(tc("qdisc add dev in clsact"));
        ASSERT_TRUE(tc("filter add dev in egress pref 50 protocol all u32 match u32 0 0"));
        const auto refused = attach(hook_of(in, HookPoint::egress), load(HookPoint::egress), {});
        ASSERT_FALSE(refused);
        EXPECT_NE(refused.error().message.find("priority 50"), std::string::npos) << refused.error().message;
        EXPECT_TRUE(
            attach(hook_of(in, HookPoint::egress), load(HookPoint::egress), {.rank = {.priority = 40}}));
    });
}

// The kernel takes a filter for egress there, and asks it about packets that arrive.
TEST(TcAttach, TheDisciplineIngressHasNoEgressHook) {
    in_own_network([] {
        const Interface in = make_veth();
        ASSERT_TRUE(tc("qdisc add dev in ingress"));
        const auto refused_at_egress = [&] {
            const auto refused = attach(hook_of(in, HookPoint::egress), load(HookPoint::egress), {});
            ASSERT_FALSE(refused);
            EXPECT_EQ(refused.error().kind, ErrorKind::kernel_refused);
            EXPECT_NE(refused.error().message.find("instead of a queueing discipline `ingress`"),
                      std::string::npos)
                << refused.error().message;
            EXPECT_FALSE(hook_of(in, HookPoint::egress).ours);
            EXPECT_TRUE(priorities(in, HookPoint::egress).empty());
        };
        refused_at_egress();
        EXPECT_TRUE(priorities(in, HookPoint::ingress).empty());
        EXPECT_FALSE(attach_noting(in, value_or_fail(FlowMemory::create(1000))));
        EXPECT_FALSE(value_or_fail(read_noting(in)));
        EXPECT_TRUE(priorities(in, HookPoint::ingress).empty());
        ASSERT_TRUE(attach(hook_of(in, HookPoint::ingress), load(HookPoint::ingress), {}));
        refused_at_egress();
        EXPECT_EQ(priorities(in, HookPoint::ingress), std::vector<std::uint32_t>{50});
        ASSERT_TRUE(detach(hook_of(in, HookPoint::ingress)));
        ASSERT_TRUE(tc("qdisc del dev in ingress"));
        EXPECT_TRUE(attach(hook_of(in, HookPoint::egress), load(HookPoint::egress), {}));
    });
}

TEST(TcAttach, UnknownHardwareIsRefused) {
    EXPECT_EQ(link_of_hardware(1), SIEVE_LINK_ETHERNET);   // ARPHRD_ETHER
    EXPECT_EQ(link_of_hardware(772), SIEVE_LINK_ETHERNET); // ARPHRD_LOOPBACK
    EXPECT_EQ(link_of_hardware(0xfffe), SIEVE_LINK_IP);    // ARPHRD_NONE
    EXPECT_EQ(link_of_hardware(824), std::nullopt);        // ARPHRD_NETLINK
    EXPECT_EQ(link_of_hardware(801), std::nullopt);        // ARPHRD_IEEE80211
    in_own_network([] {
        if (!ip("tuntap add dev bare mode tun")) GTEST_SKIP() << "this kernel has no tun";
        const Interface bare = value_or_fail(find_interface("bare"));
        for (const HookPoint point : all_hook_points) {
            const auto attached = attach(hook_of(bare, point), load(point), {});
            ASSERT_TRUE(attached) << attached.error().message;
            EXPECT_EQ(attached->hook.instance->control().link, SIEVE_LINK_IP) << hook_point_name(point);
            ASSERT_TRUE(detach(attached->hook));
        }
    });
}

// --- packets that a test run cannot make
// ---------------------------------------------------------------------

// As in linux/virtio_net.h, which no C++ compiler accepts: what a packet socket learns about a frame.
struct VirtioHeader {
    std::uint8_t flags, gso_type;
    std::uint16_t header_bytes; // they are in the packet's linear part
    std::uint16_t gso_size, csum_start, csum_offset;
};

// Sends a frame out of an interface. If the frame is longer than a page, at most `linear` of its bytes are in
// the packet's linear part.
void send_frame(const Interface& interface, const Bytes& frame, std::uint16_t linear = 0) {
    const UniqueFd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    const int on = 1;
    ASSERT_EQ(::setsockopt(socket.get(), SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = static_cast<int>(interface.index);
    VirtioHeader header{};
    header.header_bytes = linear;
    Bytes bytes(sizeof(header));
    __builtin_memcpy(bytes.data(), &header, sizeof(header));
    bytes.insert(bytes.end(), frame.begin(), frame.end());
    const ssize_t sent = ::sendto(socket.get(), bytes.data(), bytes.size(), 0,
                                  reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    // The kernel reports a packet dropped on its way out to its sender this way.
    ASSERT_TRUE(sent == static_cast<ssize_t>(bytes.size()) || (sent < 0 && errno == ENOBUFS)) << errno;
}

// The counters once so many packets were judged, or after a minute. A busy kernel puts off packets that
// arrive.
Stats stats_after(std::uint64_t packets, const Instance& instance) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (;;) {
        Stats stats = value_or_fail(read_stats(instance));
        if (stats.passed.packets + stats.dropped.packets + stats.redirected.packets >= packets ||
            std::chrono::steady_clock::now() > deadline)
            return stats;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

// Our program at that hook of "in", dropping packets from 10.0.0.1 and 2001:db8::bad.
Instance dropping(const Interface& in, HookPoint point) {
    const auto map = map_of(image_of({"10.0.0.1", "2001:db8::bad"}));
    const BpfObject object = load(point);
    if (const Status done =
            SetTable(object.instance()).replace({SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}}});
        !done)
        throw std::runtime_error(done.error().message);
    Attached attached = value_or_fail(attach(hook_of(in, point), object, {}));
    return std::move(*attached.hook.instance);
}

TEST(TcPackets, TagsInTheMetadataAndInTheFrame) {
    for (const HookPoint point : tc_points)
        in_own_network([&] {
            const Interface in = make_veth();
            const Instance instance = dropping(in, point);
            // The kernel moves the first tag of an arriving packet to the packet's metadata before tc sees
            // it.
            const Interface from = point == HookPoint::egress ? in : value_or_fail(find_interface("out"));
            std::uint64_t sent = 0;
            for (int tags = 0; tags <= 4; tags++) {
                Packet packet{Ethernet{}};
                for (int i = 0; i < tags; i++) packet = packet / Vlan{};
                send_frame(from, (packet / IPv4{.src = "10.0.0.1"} / Udp{}).bytes());
                send_frame(from, (packet / IPv6{.src = "2001:db8::bad"} / Tcp{}).bytes());
                sent += 2;
                const Stats stats = stats_after(sent, instance);
                EXPECT_EQ(stats.dropped.packets, sent) << tags << " tags at " << hook_point_name(point);
            }
        });
}

TEST(TcPackets, HeadersOutsideTheLinearPart) {
    in_own_network([] {
        const Interface in = make_veth(9000);
        const Instance instance = dropping(in, HookPoint::egress);
        std::uint64_t sent = 0, bytes = 0;
        for (const std::uint16_t linear : {14, 20, 34, 36, 54, 60, 2000})
            for (const Packet& packet :
                 {Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{} / Payload{.bytes = 6000},
                  Ethernet{} / IPv6{.src = "2001:db8::bad"} / Extension{.units = 100} / Udp{} /
                      Payload{.bytes = 6000}}) {
                send_frame(in, packet.bytes(), linear);
                sent++;
                bytes += packet.bytes().size();
                const Stats stats = stats_after(sent, instance);
                EXPECT_EQ(stats.outcome[SIEVE_OUTCOME_COMPLETE], sent) << linear << " linear bytes";
                EXPECT_EQ(stats.dropped.packets, sent) << linear << " linear bytes";
                EXPECT_EQ(stats.dropped.bytes, bytes);
            }
    });
}

// A packet that passes goes on to the filters behind ours. A packet that a filter before ours accepts never
// reaches ours.
TEST(TcPackets, OtherFiltersAreAskedToo) {
    in_own_network([] {
        const Interface in = make_veth();
        const UniqueFd accepting = foreign_program(TC_ACT_OK);
        const UniqueFd dropping_all = foreign_program(TC_ACT_SHOT);
        const Instance instance = dropping(in, HookPoint::egress);
        const Interface out = value_or_fail(find_interface("out"));
        const Instance arrived = dropping(out, HookPoint::ingress);
        const auto send = [&](const char* source) {
            send_frame(in, (Ethernet{} / IPv4{.src = source} / Udp{}).bytes());
        };
        const auto count = [](const Instance& at, std::uint64_t expected) {
            const Stats stats = stats_after(expected, at);
            return stats.passed.packets + stats.dropped.packets;
        };
        send("10.9.9.9");
        EXPECT_EQ(count(instance, 1), 1U);
        EXPECT_EQ(count(arrived, 1), 1U);
        ASSERT_EQ(add_filter(in, HookPoint::egress, dropping_all.get(), 60), 0);
        send("10.9.9.9"); // passes ours, then meets the next filter
        EXPECT_EQ(count(instance, 2), 2U);
        EXPECT_EQ(count(arrived, 1), 1U);
        ASSERT_EQ(add_filter(in, HookPoint::egress, accepting.get(), 40), 0);
        send("10.0.0.1");
        EXPECT_EQ(count(instance, 2), 2U);
        EXPECT_EQ(count(arrived, 2), 2U);
    });
}

TEST(TcPackets, RedirectsToAnInterfaceThatIsThere) {
    for (const HookPoint point : tc_points)
        in_own_network([&] {
            const Interface in = make_veth();
            ASSERT_TRUE(ip("link add to type veth peer name end") && ip("link set to up") &&
                        ip("link set end up"));
            const Interface to = value_or_fail(find_interface("to"));
            const auto map = map_of(image_of({"10.0.0.1"}));
            const BpfObject object = load(point);
            SetTable table(object.instance());
            ASSERT_TRUE(table.replace({SIEVE_ACTION_PASS,
                                       {{.name = "there",
                                         .action = SIEVE_ACTION_REDIRECT_DEVICE,
                                         .map_fd = map.fd(),
                                         .target = to.index}}}));
            ASSERT_TRUE(attach(hook_of(in, point), object, {}));
            const Instance arrived = dropping(value_or_fail(find_interface("end")), HookPoint::ingress);
            const Interface from = point == HookPoint::egress ? in : value_or_fail(find_interface("out"));
            const Bytes frame = (Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{}).bytes();
            send_frame(from, frame);
            Stats stats = stats_after(1, object.instance());
            EXPECT_EQ(stats.redirected.packets, 1U) << hook_point_name(point);
            EXPECT_EQ(stats_after(1, arrived).dropped.packets, 1U) << hook_point_name(point);
            // The target has gone, so the default decides, as at XDP.
            ASSERT_TRUE(ip("link del to"));
            send_frame(from, frame);
            stats = stats_after(2, object.instance());
            EXPECT_EQ(stats.redirected.packets, 1U);
            EXPECT_EQ(stats.redirect_failed, 1U);
            EXPECT_EQ(stats.passed.packets, 1U);
            // At tc, a CPU is no target.
            const auto refused = table.replace(
                {SIEVE_ACTION_PASS,
                 {{.name = "cpu", .action = SIEVE_ACTION_REDIRECT_CPU, .map_fd = map.fd(), .target = 0}}});
            ASSERT_FALSE(refused);
            EXPECT_NE(refused.error().message.find("XDP"), std::string::npos) << refused.error().message;
        });
}

} // namespace
} // namespace sieve::kernel
