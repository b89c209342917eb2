// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The noting program on a real interface: attached, found, replaced, taken off; and what it learns from
// sockets.
#include "libsieve/kernel/hooks/noting.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/own_network.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

constexpr char peer[] = "10.1.1.2", other[] = "10.1.1.3";

// An interface whose packets leave, to neighbours that nobody has to ask for.
Interface up_interface() {
    if (!ip("link add one type veth peer name two") || !ip("addr add 10.1.1.1/24 dev one") ||
        !ip("link set one up") || !ip("link set two up") ||
        !ip(std::string("neigh add ") + peer + " lladdr 02:00:00:00:00:02 dev one") ||
        !ip(std::string("neigh add ") + other + " lladdr 02:00:00:00:00:03 dev one"))
        throw std::runtime_error("making an interface");
    return value_or_fail(find_interface("one"));
}

sockaddr_in address_of(const char* text, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, text, &address.sin_addr);
    return address;
}

// Sends a datagram from a socket bound to `port` (0: the kernel chooses), connected or not; the source port.
std::uint16_t send_from(std::uint16_t port, bool connected, std::uint16_t to_port) {
    const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM, 0));
    sockaddr_in own = address_of("10.1.1.1", port);
    const sockaddr_in to = address_of(peer, to_port);
    const auto* target = reinterpret_cast<const sockaddr*>(&to);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)), 0);
    if (connected) {
        EXPECT_EQ(::connect(fd.get(), target, sizeof(to)), 0);
        EXPECT_EQ(::send(fd.get(), "x", 1, 0), 1);
    } else {
        EXPECT_EQ(::sendto(fd.get(), "x", 1, 0, target, sizeof(to)), 1);
    }
    socklen_t length = sizeof(own);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length);
    return ntohs(own.sin_port);
}

sieve_key udp_key(std::uint16_t sport, std::uint16_t dport) {
    return {{0, sieve_v4_mapped(0x0a010101), 0, sieve_v4_mapped(0x0a010102),
             sieve_transport_word(sport, dport, 17)}};
}

TEST(Noting, IsAttachedFoundAndTakenOff) {
    in_own_network([] {
        const Interface interface = up_interface();
        EXPECT_FALSE(value_or_fail(read_noting(interface)));
        EXPECT_FALSE(value_or_fail(FlowMemory::in_force()));
        {
            const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
            const Noting noting = value_or_fail(attach_noting(interface, memory));
            EXPECT_EQ(noting.memory_id, memory.id());
            EXPECT_EQ(noting.filter.priority, noting_priority);
        }
        const std::optional<Noting> noting = value_or_fail(read_noting(interface));
        ASSERT_TRUE(noting);
        EXPECT_EQ(all_notings().size(), 1U);
        const std::uint16_t port = send_from(0, true, 4000);
        const std::optional<FlowMemory> memory = value_or_fail(FlowMemory::in_force());
        ASSERT_TRUE(memory) << "the program keeps it";
        EXPECT_TRUE(memory->holds(udp_key(port, 4000)));
        EXPECT_EQ(value_or_fail(read_noting(interface))->counts.begun, 2U);

        // Attaching again changes the memory, and keeps the counts.
        const FlowMemory next = value_or_fail(FlowMemory::create(1000));
        const Noting again = value_or_fail(attach_noting(interface, next));
        EXPECT_EQ(again.filter.program_id, noting->filter.program_id);
        EXPECT_EQ(again.memory_id, next.id());
        EXPECT_EQ(again.counts.begun, 2U);
        EXPECT_TRUE(next.holds(udp_key(send_from(0, true, 4001), 4001)));

        ASSERT_TRUE(detach_noting(interface));
        ASSERT_TRUE(detach_noting(interface)) << "no error if there is none";
        EXPECT_FALSE(value_or_fail(read_noting(interface)));
        EXPECT_FALSE(next.holds(udp_key(send_from(0, true, 4002), 4002)));
        EXPECT_TRUE(all_notings().empty());
    });
}

TEST(Noting, SeesOnlyWhatTheFiltersBeforeItPass) {
    in_own_network([] {
        const Interface interface = up_interface();
        const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
        value_or_fail(attach_noting(interface, memory));
        const BpfObject object = value_or_fail(BpfObject::load({.point = HookPoint::egress}));
        const Hook before = value_or_fail(read_hook(interface, HookPoint::egress));
        EXPECT_FALSE(before.ours) << "the noting program is no filter";
        const Attached attached = value_or_fail(attach(before, object, {}));
        EXPECT_TRUE(value_or_fail(read_noting(interface)));
        const std::uint16_t port = send_from(0, true, 4000);
        EXPECT_TRUE(memory.holds(udp_key(port, 4000)));

        WantedTable table;
        table.default_action = SIEVE_ACTION_DROP;
        ASSERT_TRUE(SetTable(object.instance()).replace(table));
        const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM, 0));
        const sockaddr_in own = address_of("10.1.1.1", 40123), to = address_of(peer, 4000);
        ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)), 0);
        ASSERT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
        ::send(fd.get(), "x", 1, 0);
        EXPECT_FALSE(memory.holds(udp_key(40123, 4000)));

        ASSERT_TRUE(detach(attached.hook));
        EXPECT_TRUE(value_or_fail(read_noting(interface)));
        ::send(fd.get(), "x", 1, 0);
        EXPECT_TRUE(memory.holds(udp_key(40123, 4000)));
    });
}

// Which sockets of UDP are servers (docs/replies.md).
TEST(Noting, AsksTheSocketWhetherItIsAServer) {
    in_own_network([] {
        const Interface interface = up_interface();
        const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
        value_or_fail(attach_noting(interface, memory));
        const auto begins = [&](std::uint16_t port, bool connected, std::uint16_t to) {
            return memory.holds(udp_key(send_from(port, connected, to), to));
        };
        EXPECT_TRUE(begins(27015, true, 40000)) << "connected: whatever the ports are";
        EXPECT_TRUE(begins(53, true, 40001));
        EXPECT_FALSE(begins(27015, false, 40002)) << "a game's server";
        EXPECT_FALSE(begins(53, false, 40003)) << "a name server";
        EXPECT_TRUE(begins(0, false, 40004)) << "the kernel chose the port";
        EXPECT_TRUE(begins(20000, false, 53)) << "a resolver that draws its own ports";
        EXPECT_TRUE(begins(123, false, 123)) << "NTP";
        EXPECT_TRUE(begins(5353, false, 5353));
        EXPECT_FALSE(begins(123, false, 1023)) << "a server of NTP";
    });
}

// A server's port outside the range is a client's once the range has grown; and the other way round.
TEST(Noting, HearsOfAnotherRangeOfPorts) {
    in_own_network([] {
        const Interface interface = up_interface();
        const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
        value_or_fail(attach_noting(interface, memory));
        const auto set_range = [](const char* range) {
            std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << range;
        };
        const auto begins = [&](std::uint16_t port, std::uint16_t to) {
            return memory.holds(udp_key(send_from(port, false, to), to));
        };
        EXPECT_FALSE(begins(27015, 40000));
        set_range("20000 60999");
        EXPECT_FALSE(begins(27015, 40001)) << "nobody has told the program";
        tell_own_ports(*value_or_fail(read_noting(interface)));
        EXPECT_TRUE(begins(27015, 40002));
        set_range("40000 60999");
        value_or_fail(attach_noting(interface, memory));
        EXPECT_FALSE(begins(27015, 40003)) << "with a memory, too";
        EXPECT_EQ(value_or_fail(read_noting(interface))->memory_id, memory.id());
        const Noting gone = *value_or_fail(read_noting(interface));
        ASSERT_TRUE(detach_noting(interface));
        set_range("20000 60999");
        tell_own_ports(gone);
    });
}

TEST(Noting, NeedsAnInterface) {
    in_own_network([] {
        const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
        const auto attached = attach_noting({.name = "gone", .index = 4711}, memory);
        ASSERT_FALSE(attached);
        EXPECT_NE(attached.error().message.find("gone"), std::string::npos) << attached.error().message;
    });
}

} // namespace
} // namespace sieve::kernel
