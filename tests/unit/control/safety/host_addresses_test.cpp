// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/host_addresses.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/kernel/host/host_network.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

std::string text(uint128 address) {
    return format_address(static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address));
}

std::vector<std::string> texts(const std::vector<HostAddress>& addresses) {
    std::vector<std::string> all;
    for (const HostAddress& address : addresses) all.push_back(text(address.address));
    return all;
}

using Texts = std::vector<std::string>;

std::vector<kernel::TcpSession> sessions_in(std::string_view text, const std::set<std::uint16_t>& ports) {
    return kernel::sessions_among(kernel::sockets_in(text), ports);
}

TEST(HostAddresses, Resolvers) {
    EXPECT_EQ(
        texts(resolvers_of("# comment\nsearch example\nnameserver 192.0.2.53\n nameserver fe80::1%eth0\n"
                           "nameserver\nnameserver nonsense\n")),
        (Texts{"192.0.2.53", "fe80::1"}));
    EXPECT_TRUE(resolvers_of("\n\na b c").empty());
}

TEST(HostAddresses, TheSshSession) {
    const auto whole = ssh_session_of("203.0.113.5 54321 192.0.2.1 2222");
    ASSERT_TRUE(whole);
    EXPECT_EQ(text(whole->address), "203.0.113.5");
    EXPECT_EQ(text(whole->ours.value()), "192.0.2.1");
    EXPECT_EQ(whole->their_port, 54321);
    EXPECT_EQ(whole->our_port, 2222);
    EXPECT_EQ(text(ssh_session_of("fe80::5%eth0 1 fe80::1%eth0 22")->address), "fe80::5");
    EXPECT_FALSE(ssh_session_of("203.0.113.5")->ours);
    EXPECT_EQ(ssh_session_of("203.0.113.5 99999 192.0.2.1 x")->our_port, 0);
    for (const char* nonsense : {"", " ", "nobody 1 192.0.2.1 22"}) EXPECT_FALSE(ssh_session_of(nonsense));
}

// The texts come from Linux 6.1 on a little-endian machine: established to port 22; listening on port 22;
// established to port 80; our own connection to a port 22 elsewhere.
TEST(HostAddresses, SessionsInProc) {
    const auto found = sessions_in(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 010200C0:0016 07006FCB:D431 01 00000000:00000000 02:000A7214 00000000     0        0 1 4\n"
        "   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1\n"
        "   2: 010200C0:0050 08006FCB:D431 01 00000000:00000000 02:000A7214 00000000     0        0 3 4\n"
        "   3: 010200C0:D431 09006FCB:0016 01 00000000:00000000 02:000A7214 00000000     0        0 4 4\n",
        {22});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(text(found[0].theirs), "203.111.0.7");
    EXPECT_EQ(text(found[0].ours), "192.0.2.1");
    EXPECT_EQ(found[0].our_port, 22);
    EXPECT_EQ(found[0].their_port, 0xd431);
    const auto six = sessions_in("   0: B80D0120000000000000000001000000:0016 "
                                 "B80D0120000000000000000002000000:8F1C 01 00000000:00000000 "
                                 "02:0009 00000000 0 0 5 2\n"
                                 "   1: 0000000000000000FFFF0000010200C0:0016 "
                                 "0000000000000000FFFF000007006FCB:8F1C 01 00000000:00000000 "
                                 "02:0009 00000000 0 0 6 2\n",
                                 {22});
    ASSERT_EQ(six.size(), 2U);
    EXPECT_EQ(text(six[0].theirs), "2001:db8::2");
    EXPECT_EQ(text(six[1].theirs), "203.111.0.7");
    for (const char* nonsense : {"", "\n\n", "a b c", "0: x y 01", "0: 1:0016 zz:1 01", "0: : : 01"})
        EXPECT_TRUE(sessions_in(nonsense, {0, 22}).empty()) << nonsense;
}

TEST(HostAddresses, TheProtectList) {
    const test::Files files;
    EXPECT_EQ(
        texts(read_protect_list(files.feed("few", {"192.0.2.1", "198.51.100.4/31", "2001:db8::1"})).value()),
        (Texts{"198.51.100.4", "198.51.100.5", "192.0.2.1", "2001:db8::1"}));
    EXPECT_EQ(read_protect_list(files.feed("many", {"10.0.0.0/16"})).value().size(), most_listed);
    for (const char* entry : {"10.0.0.0/15", "2001:db8::/32", "0.0.0.0/0"}) {
        const auto list = read_protect_list(files.feed("too-many", {entry}));
        ASSERT_FALSE(list) << entry;
        EXPECT_EQ(list.error().kind, ErrorKind::bad_input);
    }
    EXPECT_FALSE(read_protect_list(files.feed("wrong", {"nonsense"})));
    EXPECT_FALSE(read_protect_list(files.path("missing")));
}

TEST(HostAddresses, ResolversOfAFile) {
    const test::Files files;
    const std::string path = files.feed("resolv.conf", {"nameserver 192.0.2.53"});
    EXPECT_EQ(texts(read_resolvers(path).value()), Texts{"192.0.2.53"});
    std::filesystem::remove(path);
    EXPECT_TRUE(read_resolvers(path).value().empty()) << "a host need not have the file";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    expect_error(read_resolvers(path), ErrorKind::bad_input);
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    expect_error(read_resolvers(path), ErrorKind::bad_input);
}

TEST(HostAddresses, ThisHostsCanBeRead) {
    EXPECT_TRUE(RealHostAddresses().read());
}

HostAddress address(uint128 number) {
    HostAddress one;
    one.address = number;
    return one;
}

class TwoAddresses final : public HostAddresses {
    Result<std::vector<HostAddress>> read() override {
        return std::vector<HostAddress>{address(1), address(2)};
    }
};

TEST(HostAddresses, SomeAreThoseThatAreWanted) {
    const auto is_two = [](uint128 address) { return address == 2; };
    EXPECT_EQ(texts(TwoAddresses().read_some(is_two).value()), Texts{"::2"});

    RealHostAddresses real({}, {address(3), address(5)});
    const auto is_odd = [](uint128 address) { return (address & 1) != 0; };
    Texts wanted, some, after;
    // The host may change between two questions.
    for (int attempt = 0; attempt == 0 || (attempt < 100 && wanted != after); attempt++) {
        wanted = texts(real.read().value());
        some = texts(real.read_some([](uint128 address) { return address != 5; }).value());
        after = texts(real.read().value());
    }
    ASSERT_EQ(wanted, after);
    EXPECT_EQ(std::erase(wanted, "::5"), 1U);
    EXPECT_EQ(some, wanted);
    const std::vector<HostAddress> odd = real.read_some(is_odd).value();
    EXPECT_TRUE(std::ranges::all_of(odd, is_odd, &HostAddress::address));
    EXPECT_TRUE(real.read_some([](uint128) { return false; }).value().empty());
}

} // namespace
} // namespace sieve::control
