// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/own_flows.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "libsieve/kernel/host/host_network.hpp"

namespace sieve::kernel {

namespace {

bool is_loopback(uint128 address) {
    return is_ipv4(address) ? static_cast<std::uint32_t>(address) >> 24 == 127 : address <= 1;
}

sieve_key key_of(const Direction& sent, std::uint8_t protocol) {
    return {{static_cast<std::uint64_t>(sent.from >> 64), static_cast<std::uint64_t>(sent.from),
             static_cast<std::uint64_t>(sent.to >> 64), static_cast<std::uint64_t>(sent.to),
             sieve_transport_word(sent.from_port, sent.to_port, protocol)}};
}

class Collection {
  public:
    void add(const Direction& sent, std::uint8_t protocol, FlowAge age = FlowAge::established) {
        if (is_loopback(sent.from) || is_loopback(sent.to)) return;
        const sieve_key key = key_of(sent, protocol);
        if (seen_.insert(std::to_array(key.word)).second) flows_.push_back({key, age});
    }
    [[nodiscard]] std::vector<OwnFlow> take() && { return std::move(flows_); }

  private:
    std::set<std::array<__u64, SIEVE_KEY_WORDS>> seen_;
    std::vector<OwnFlow> flows_;
};

// How far a connection has come whose socket is in this state; nothing: there is none yet, or no more. A peer
// may send on after this host's FIN, and this host after the peer's.
std::optional<FlowAge> age_of_tcp(std::uint8_t state) {
    switch (state) {
    case TCP_ESTABLISHED:
    case TCP_CLOSE_WAIT:
        return FlowAge::established;
    case TCP_FIN_WAIT1:
    case TCP_FIN_WAIT2:
    case TCP_CLOSING:
    case TCP_LAST_ACK:
        return FlowAge::closing;
    default:
        return std::nullopt;
    }
}
constexpr std::uint32_t tcp_states = 1U << TCP_LISTEN | 1U << TCP_ESTABLISHED | 1U << TCP_CLOSE_WAIT |
                                     1U << TCP_FIN_WAIT1 | 1U << TCP_FIN_WAIT2 | 1U << TCP_CLOSING |
                                     1U << TCP_LAST_ACK;

Direction sent_by(const Socket& socket) {
    return {
        .from = socket.ours, .to = socket.theirs, .from_port = socket.our_port, .to_port = socket.their_port};
}

} // namespace

std::vector<OwnFlow> own_flows(const KnownFlows& known, const std::string& interface,
                               const std::function<std::string(uint128)>& way_out) {
    Collection found;
    std::set<std::uint16_t> listening;
    for (const Socket& socket : known.tcp)
        if (socket.state == TCP_LISTEN) listening.insert(socket.our_port);
    for (const Socket& socket : known.tcp)
        if (const auto age = age_of_tcp(socket.state); age && !listening.contains(socket.our_port))
            found.add(sent_by(socket), IPPROTO_TCP, *age);
    for (const Socket& socket : known.udp)
        if (socket.state == TCP_ESTABLISHED && socket.their_port != 0)
            found.add(sent_by(socket), IPPROTO_UDP);

    const std::set<uint128> own(known.own.begin(), known.own.end());
    std::map<uint128, std::string> ways;
    const auto leaves_here = [&](uint128 address) {
        const auto [way, fresh] = ways.try_emplace(address);
        if (fresh) way->second = way_out(address);
        return way->second == interface;
    };
    for (const TrackedFlow& flow : known.tracked) {
        if (flow.protocol == IPPROTO_ICMP || flow.protocol == IPPROTO_ICMPV6) continue; // over in a moment
        if (flow.protocol == IPPROTO_TCP && !flow.established) continue;
        if (own.contains(flow.begun.from)) {
            // Tracking that began in the middle of a connection may have it the wrong way round.
            if (flow.protocol == IPPROTO_TCP && listening.contains(flow.begun.from_port)) continue;
        } else if (leaves_here(flow.begun.from) || !leaves_here(flow.answered.from)) {
            continue;
        }
        found.add({.from = flow.answered.to,
                   .to = flow.answered.from,
                   .from_port = flow.answered.to_port,
                   .to_port = flow.answered.from_port},
                  flow.protocol);
    }
    return std::move(found).take();
}

Result<std::vector<OwnFlow>> own_flows(const std::string& interface) {
    KnownFlows known{.tcp = sockets(IPPROTO_TCP, tcp_states),
                     .udp = sockets(IPPROTO_UDP, 1U << TCP_ESTABLISHED)};
    SIEVE_ASSIGN(known.tracked, tracked_flows());
    SIEVE_ASSIGN(const std::vector<PlacedAddress> own, own_addresses());
    for (const PlacedAddress& address : own) known.own.push_back(address.address);
    return own_flows(known, interface, [](uint128 address) {
        const std::optional<WayOut> way = way_to(address);
        return way ? way->interface : std::string();
    });
}

} // namespace sieve::kernel
