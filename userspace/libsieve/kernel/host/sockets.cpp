// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/sockets.hpp"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>

#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include <fmt/core.h>

#include "libsieve/kernel/host/netlink.hpp"
#include "libsieve/util/system/small_file.hpp"

namespace sieve::kernel {

namespace {

constexpr std::size_t longest_socket_list = std::size_t{1} << 30;

Socket socket_of(const inet_diag_msg& socket) {
    const std::size_t length = socket.idiag_family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
    return {.state = socket.idiag_state,
            .ours = address_of(socket.id.idiag_src, length),
            .theirs = address_of(socket.id.idiag_dst, length),
            .our_port = ntohs(socket.id.idiag_sport),
            .their_port = ntohs(socket.id.idiag_dport),
            .inode = socket.idiag_inode};
}

// Returns 0 or an errno value.
int ask_sock_diag(std::uint8_t family, std::uint8_t protocol, std::uint32_t states,
                  std::vector<Socket>& found) {
    return dump_netlink(
        NETLINK_SOCK_DIAG,
        [&](nlmsghdr* request) {
            request->nlmsg_type = SOCK_DIAG_BY_FAMILY;
            request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
            auto* ask =
                static_cast<inet_diag_req_v2*>(mnl_nlmsg_put_extra_header(request, sizeof(inet_diag_req_v2)));
            ask->sdiag_family = family;
            ask->sdiag_protocol = protocol;
            ask->idiag_states = states;
        },
        [&] { found.clear(); },
        [&](const nlmsghdr* message) {
            if (message->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
                mnl_nlmsg_get_payload_len(message) >= sizeof(inet_diag_msg))
                found.push_back(
                    socket_of(*static_cast<const inet_diag_msg*>(mnl_nlmsg_get_payload(message))));
        });
}

template <class Number>
std::optional<Number> parse_hex(std::string_view text) {
    Number value = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || at != text.data() + text.size()) return std::nullopt;
    return value;
}

struct End {
    uint128 address = 0;
    std::uint16_t port = 0;
};

// "0100007F:0016": words in the machine's order, and the port.
std::optional<End> parse_end(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon != 8 && colon != 32) return std::nullopt;
    const auto port = parse_hex<std::uint16_t>(text.substr(colon + 1));
    std::array<std::uint32_t, 4> words{};
    for (std::size_t i = 0; i < colon / 8; i++) {
        const auto word = parse_hex<std::uint32_t>(text.substr(8 * i, 8));
        if (!word || !port) return std::nullopt;
        words[i] = *word;
    }
    return End{address_of(words.data(), colon / 2), *port};
}

// "6: 0100007F:0016 0200007F:C350 01 00000000:00000000 00:00000000 00000000 0 0 12345 ...".
std::optional<Socket> parse_line(const std::string& line) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
    const std::optional<End> ours = parse_end(local), theirs = parse_end(remote);
    const auto in_state = parse_hex<std::uint8_t>(state);
    if (!ours || !theirs || !in_state) return std::nullopt;
    Socket socket{.state = *in_state,
                  .ours = ours->address,
                  .theirs = theirs->address,
                  .our_port = ours->port,
                  .their_port = theirs->port};
    std::from_chars(inode.data(), inode.data() + inode.size(), socket.inode);
    return socket;
}

} // namespace

std::vector<Socket> sockets_in(std::string_view text) {
    std::vector<Socket> found;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);)
        if (const std::optional<Socket> socket = parse_line(line)) found.push_back(*socket);
    return found;
}

std::vector<Socket> sockets(std::uint8_t protocol, std::uint32_t states) {
    std::vector<Socket> all;
    for (const std::uint8_t family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}}) {
        std::vector<Socket> found;
        if (ask_sock_diag(family, protocol, states, found) != 0) {
            const std::string path =
                fmt::format("/proc/thread-self/net/{}{}", protocol == IPPROTO_TCP ? "tcp" : "udp",
                            family == AF_INET ? "" : "6");
            found = sockets_in(small_file_or_nothing(path, longest_socket_list));
            std::erase_if(found, [&](const Socket& one) { return (states >> one.state & 1) == 0; });
        }
        all.insert(all.end(), found.begin(), found.end());
    }
    return all;
}

} // namespace sieve::kernel
