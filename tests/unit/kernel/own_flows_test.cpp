// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/own_flows.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"

namespace sieve::kernel {
namespace {

uint128 address(const std::string& text) {
    const sieve_key key = parse_key(text, SIEVE_FIELD_SRC).value();
    return address_number(key.word[0], key.word[1]);
}

Socket socket(std::uint8_t state, const std::string& ours, std::uint16_t our_port, const std::string& theirs,
              std::uint16_t their_port) {
    return {.state = state,
            .ours = address(ours),
            .theirs = address(theirs),
            .our_port = our_port,
            .their_port = their_port};
}

Direction direction(const std::string& from, std::uint16_t from_port, const std::string& to,
                    std::uint16_t to_port) {
    return {.from = address(from), .to = address(to), .from_port = from_port, .to_port = to_port};
}

// A router: 192.0.2.1 is its address on eth0, behind which the internet is; 10.0.0.0/8 is behind eth1.
class OwnFlows : public testing::Test {
  protected:
    KnownFlows known{.own = {address("192.0.2.1"), address("10.0.0.1"), address("2001:db8::1")}};

    [[nodiscard]] std::vector<std::string> found() const {
        std::vector<std::string> texts;
        for (const OwnFlow& flow : own_flows(known, "eth0", [](uint128 to) {
                 return std::string(to >= address("10.0.0.0") && to <= address("10.255.255.255") ? "eth1"
                                                                                                 : "eth0");
             }))
            texts.push_back(format_key(flow.key, SIEVE_FIELD_ALL) +
                            (flow.age == FlowAge::closing ? " closing" : ""));
        return texts;
    }
};

using Texts = std::vector<std::string>;

TEST_F(OwnFlows, AConnectionIsOursIfNobodyListensOnItsPort) {
    known.tcp = {socket(TCP_LISTEN, "0.0.0.0", 22, "0.0.0.0", 0),
                 socket(TCP_ESTABLISHED, "192.0.2.1", 22, "198.51.100.9", 50000),
                 socket(TCP_ESTABLISHED, "192.0.2.1", 40000, "198.51.100.1", 443),
                 socket(TCP_TIME_WAIT, "192.0.2.1", 40001, "198.51.100.1", 443),
                 socket(TCP_ESTABLISHED, "2001:db8::1", 40002, "2001:db8::2", 22),
                 socket(TCP_ESTABLISHED, "127.0.0.1", 40003, "127.0.0.1", 5432)};
    EXPECT_EQ(found(),
              (Texts{"192.0.2.1 198.51.100.1 40000 443 tcp", "2001:db8::1 2001:db8::2 40002 22 tcp"}));
}

// Each end may go on after the other's FIN.
TEST_F(OwnFlows, AHalfClosedConnectionIsOurs) {
    std::uint16_t port = 40000;
    for (const std::uint8_t state :
         {TCP_ESTABLISHED, TCP_SYN_SENT, TCP_SYN_RECV, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_TIME_WAIT, TCP_CLOSE,
          TCP_CLOSE_WAIT, TCP_LAST_ACK, TCP_CLOSING})
        known.tcp.push_back(socket(state, "192.0.2.1", port++, "198.51.100.1", 443));
    EXPECT_EQ(found(),
              (Texts{"192.0.2.1 198.51.100.1 40000 443 tcp", "192.0.2.1 198.51.100.1 40003 443 tcp closing",
                     "192.0.2.1 198.51.100.1 40004 443 tcp closing", "192.0.2.1 198.51.100.1 40007 443 tcp",
                     "192.0.2.1 198.51.100.1 40008 443 tcp closing",
                     "192.0.2.1 198.51.100.1 40009 443 tcp closing"}));
    known.tcp = {socket(TCP_LISTEN, "0.0.0.0", 22, "0.0.0.0", 0),
                 socket(TCP_FIN_WAIT2, "192.0.2.1", 22, "198.51.100.9", 50000)};
    EXPECT_EQ(found(), Texts{}) << "a peer began it";
}

TEST_F(OwnFlows, AConnectedSocketOfUdpIsOurs) {
    known.udp = {socket(TCP_ESTABLISHED, "192.0.2.1", 40000, "198.51.100.1", 443),
                 socket(TCP_CLOSE, "0.0.0.0", 53, "0.0.0.0", 0)};
    EXPECT_EQ(found(), Texts{"192.0.2.1 198.51.100.1 40000 443 udp"});
}

TEST_F(OwnFlows, ATrackedFlowIsOursIfItBeganHereOrBehind) {
    known.tcp = {socket(TCP_LISTEN, "0.0.0.0", 22, "0.0.0.0", 0)};
    known.tracked = {
        // A container behind eth1, whose address is translated.
        {.protocol = IPPROTO_TCP,
         .begun = direction("10.0.0.5", 50000, "198.51.100.1", 443),
         .answered = direction("198.51.100.1", 443, "192.0.2.1", 61000),
         .established = true},
        // The same before it is established; one that a stranger began and that is translated to the
        // container;
        // one of the host; one that tracking saw from its middle on, the wrong way round; an echo.
        {.protocol = IPPROTO_TCP,
         .begun = direction("10.0.0.5", 50001, "198.51.100.1", 443),
         .answered = direction("198.51.100.1", 443, "192.0.2.1", 61001)},
        {.protocol = IPPROTO_TCP,
         .begun = direction("198.51.100.9", 50000, "192.0.2.1", 80),
         .answered = direction("10.0.0.5", 8080, "198.51.100.9", 50000),
         .established = true},
        {.protocol = IPPROTO_UDP,
         .begun = direction("192.0.2.1", 40000, "198.51.100.1", 53),
         .answered = direction("198.51.100.1", 53, "192.0.2.1", 40000)},
        {.protocol = IPPROTO_TCP,
         .begun = direction("192.0.2.1", 22, "198.51.100.9", 50002),
         .answered = direction("198.51.100.9", 50002, "192.0.2.1", 22),
         .established = true},
        {.protocol = IPPROTO_ICMP,
         .begun = direction("192.0.2.1", 0, "198.51.100.1", 0),
         .answered = direction("198.51.100.1", 0, "192.0.2.1", 0)},
        // Between two networks behind eth1.
        {.protocol = IPPROTO_UDP,
         .begun = direction("10.0.0.5", 1, "10.9.0.5", 2),
         .answered = direction("10.9.0.5", 2, "10.0.0.5", 1)},
    };
    EXPECT_EQ(found(),
              (Texts{"192.0.2.1 198.51.100.1 61000 443 tcp", "192.0.2.1 198.51.100.1 40000 53 udp"}));
}

TEST_F(OwnFlows, EachIsNamedOnce) {
    known.tcp = {socket(TCP_FIN_WAIT2, "192.0.2.1", 40000, "198.51.100.1", 443)};
    known.tracked = {{.protocol = IPPROTO_TCP,
                      .begun = direction("192.0.2.1", 40000, "198.51.100.1", 443),
                      .answered = direction("198.51.100.1", 443, "192.0.2.1", 40000),
                      .established = true}};
    EXPECT_EQ(found(), Texts{"192.0.2.1 198.51.100.1 40000 443 tcp closing"}) << "the socket knows more";
}

} // namespace
} // namespace sieve::kernel
