// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host_network.hpp"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <sstream>
#include <system_error>

#include <fmt/core.h>

#include "libsieve/kernel/netlink.hpp"
#include "libsieve/kernel/refusal.hpp"
#include "libsieve/util/small_file.hpp"

namespace sieve::kernel {

namespace {

constexpr std::size_t longest_name = 64; // of a process
constexpr std::size_t longest_socket_list = std::size_t{1} << 30;
constexpr int attempts = 5; // a dump whose subject changes meanwhile is taken again

// An address as the kernel writes it, in network order: 4 or 16 bytes.
uint128 address_of(const void* bytes, std::size_t length) {
    uint128 number = 0;
    for (std::size_t i = 0; i < length; i++)
        number = number << 8 | static_cast<const std::uint8_t*>(bytes)[i];
    return length == sizeof(in_addr) ? all_ipv4.first | number : number;
}

std::optional<uint128> address_of(const nlattr* attribute) {
    if (attribute == nullptr) return std::nullopt;
    const std::size_t length = mnl_attr_get_payload_len(attribute);
    if (length != sizeof(in_addr) && length != sizeof(in6_addr)) return std::nullopt;
    return address_of(mnl_attr_get_payload(attribute), length);
}

std::string interface_name(std::uint32_t index) {
    std::array<char, IF_NAMESIZE> name{};
    return ::if_indextoname(index, name.data()) != nullptr ? name.data() : "";
}

int dump(int family, const FillRequest& fill, const std::function<void()>& begin, const TakeMessage& take) {
    int error = EINTR;
    for (int attempt = 0; attempt < attempts && error == EINTR; attempt++) {
        begin();
        error = ask_netlink(family, fill, take);
    }
    return error;
}

// Fills in a request of rtnetlink for all entries, of either family.
template <class Header>
FillRequest all_of(std::uint16_t type) {
    return [type](nlmsghdr* request) {
        request->nlmsg_type = type;
        request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
        mnl_nlmsg_put_extra_header(request, sizeof(Header)); // zero: AF_UNSPEC
    };
}

using RouteAttributes = NetlinkAttributes<RTA_MAX + 1>;

// The address of a next hop. RTA_VIA may be of another family than the route.
std::optional<uint128> next_hop(const RouteAttributes& attributes) {
    if (const auto gateway = address_of(attributes.of[RTA_GATEWAY])) return gateway;
    const nlattr* via = attributes.of[RTA_VIA];
    if (via == nullptr || mnl_attr_get_payload_len(via) <= sizeof(rtvia)) return std::nullopt;
    const std::size_t length = mnl_attr_get_payload_len(via) - sizeof(rtvia);
    if (length != sizeof(in_addr) && length != sizeof(in6_addr)) return std::nullopt;
    return address_of(static_cast<const char*>(mnl_attr_get_payload(via)) + sizeof(rtvia), length);
}

void take_next_hops(const nlattr* several, std::vector<PlacedAddress>& to) {
    const auto* bytes = static_cast<const char*>(mnl_attr_get_payload(several));
    std::size_t left = mnl_attr_get_payload_len(several);
    while (left >= sizeof(rtnexthop)) {
        rtnexthop hop{};
        std::memcpy(&hop, bytes, sizeof(hop));
        if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > left) return;
        RouteAttributes attributes;
        mnl_attr_parse_payload(bytes + sizeof(hop), hop.rtnh_len - sizeof(hop), attributes.take, &attributes);
        if (const auto gateway = next_hop(attributes))
            to.push_back({*gateway, interface_name(static_cast<std::uint32_t>(hop.rtnh_ifindex))});
        const std::size_t step = std::min<std::size_t>(left, RTNH_ALIGN(hop.rtnh_len));
        bytes += step;
        left -= step;
    }
}

void take_route(const nlmsghdr* message, std::vector<PlacedAddress>& to) {
    RouteAttributes attributes;
    if (message->nlmsg_type != RTM_NEWROUTE ||
        mnl_attr_parse(message, sizeof(rtmsg), attributes.take, &attributes) < 0)
        return;
    if (attributes.of[RTA_MULTIPATH] != nullptr) take_next_hops(attributes.of[RTA_MULTIPATH], to);
    const nlattr* out = attributes.of[RTA_OIF];
    if (const auto gateway = next_hop(attributes); gateway && out != nullptr)
        to.push_back({*gateway, interface_name(mnl_attr_get_u32(out))});
}

void take_neighbour(const nlmsghdr* message, std::vector<PlacedAddress>& to) {
    if (message->nlmsg_type != RTM_NEWNEIGH || mnl_nlmsg_get_payload_len(message) < sizeof(ndmsg)) return;
    const auto* header = static_cast<const ndmsg*>(mnl_nlmsg_get_payload(message));
    if ((header->ndm_flags & NTF_ROUTER) == 0) return;
    NetlinkAttributes<NDA_MAX + 1> attributes;
    if (mnl_attr_parse(message, sizeof(*header), attributes.take, &attributes) < 0) return;
    if (const auto address = address_of(attributes.of[NDA_DST]))
        to.push_back({*address, interface_name(static_cast<std::uint32_t>(header->ndm_ifindex))});
}

// Visits the TCP sockets of one family that are in these states. Returns 0 or an errno value.
int visit_tcp(std::uint8_t family, std::uint32_t states, const std::function<void()>& begin,
              const std::function<void(const inet_diag_msg&)>& visit) {
    return dump(
        NETLINK_SOCK_DIAG,
        [&](nlmsghdr* request) {
            request->nlmsg_type = SOCK_DIAG_BY_FAMILY;
            request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
            auto* ask =
                static_cast<inet_diag_req_v2*>(mnl_nlmsg_put_extra_header(request, sizeof(inet_diag_req_v2)));
            ask->sdiag_family = family;
            ask->sdiag_protocol = IPPROTO_TCP;
            ask->idiag_states = states;
        },
        begin,
        [&](const nlmsghdr* message) {
            if (message->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
                mnl_nlmsg_get_payload_len(message) >= sizeof(inet_diag_msg))
                visit(*static_cast<const inet_diag_msg*>(mnl_nlmsg_get_payload(message)));
        });
}

TcpSession session_of(const inet_diag_msg& socket) {
    const std::size_t length = socket.idiag_family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
    return {.ours = address_of(socket.id.idiag_src, length),
            .theirs = address_of(socket.id.idiag_dst, length),
            .our_port = ntohs(socket.id.idiag_sport),
            .their_port = ntohs(socket.id.idiag_dport)};
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

// The sockets, by inode, that the processes of this name have open.
std::set<std::uint32_t> sockets_of(std::string_view process) {
    namespace fs = std::filesystem;
    std::set<std::uint32_t> inodes;
    std::error_code error;
    for (fs::directory_iterator entry("/proc", error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        const char first = entry->path().filename().native().front();
        if (first < '0' || first > '9') continue; // no process
        std::string name = small_file_or_nothing(entry->path() / "comm", longest_name);
        if (!name.empty()) name.pop_back();
        if (name != process) continue;
        std::error_code gone; // the process may end meanwhile
        for (fs::directory_iterator fd(entry->path() / "fd", gone); !gone && fd != fs::directory_iterator();
             fd.increment(gone)) {
            std::error_code closed;
            const std::string target = fs::read_symlink(fd->path(), closed).string();
            std::uint32_t inode = 0;
            if (std::sscanf(target.c_str(), "socket:[%u]", &inode) == 1) inodes.insert(inode); // NOLINT
        }
    }
    return inodes;
}

} // namespace

Result<std::vector<PlacedAddress>> own_addresses() {
    std::vector<PlacedAddress> found;
    const int error = dump(
        NETLINK_ROUTE, all_of<ifaddrmsg>(RTM_GETADDR), [&] { found.clear(); },
        [&](const nlmsghdr* message) {
            if (message->nlmsg_type != RTM_NEWADDR || mnl_nlmsg_get_payload_len(message) < sizeof(ifaddrmsg))
                return;
            const auto* header = static_cast<const ifaddrmsg*>(mnl_nlmsg_get_payload(message));
            NetlinkAttributes<IFA_MAX + 1> attributes;
            if (mnl_attr_parse(message, sizeof(*header), attributes.take, &attributes) < 0) return;
            // At a point-to-point link IFA_ADDRESS is the other end's, and IFA_LOCAL is ours.
            const nlattr* ours =
                attributes.of[IFA_LOCAL] != nullptr ? attributes.of[IFA_LOCAL] : attributes.of[IFA_ADDRESS];
            if (const auto address = address_of(ours); address && header->ifa_scope != RT_SCOPE_HOST)
                found.push_back({*address, interface_name(header->ifa_index)});
        });
    if (error != 0) return refusal("asking for this host's addresses", error);
    return found;
}

Result<std::vector<PlacedAddress>> gateways() {
    std::vector<PlacedAddress> found;
    std::vector<PlacedAddress> neighbours;
    if (const int error = dump(
            NETLINK_ROUTE, all_of<rtmsg>(RTM_GETROUTE), [&] { found.clear(); },
            [&](const nlmsghdr* message) { take_route(message, found); });
        error != 0)
        return refusal("asking for this host's routes", error);
    if (const int error = dump(
            NETLINK_ROUTE, all_of<ndmsg>(RTM_GETNEIGH), [&] { neighbours.clear(); },
            [&](const nlmsghdr* message) { take_neighbour(message, neighbours); });
        error != 0)
        return refusal("asking for this host's neighbours", error);
    for (const std::vector<PlacedAddress>& all : {std::exchange(found, {}), std::move(neighbours)})
        for (const PlacedAddress& one : all)
            if (std::find(found.begin(), found.end(), one) == found.end()) found.push_back(one);
    return found;
}

std::optional<WayOut> way_to(uint128 address) {
    const bool v4 = is_ipv4(address);
    std::array<std::uint8_t, 16> bytes{};
    for (std::size_t i = bytes.size(); i-- > 0; address >>= 8) bytes[i] = static_cast<std::uint8_t>(address);
    std::optional<WayOut> way;
    const int error = ask_netlink(
        NETLINK_ROUTE,
        [&](nlmsghdr* request) {
            request->nlmsg_type = RTM_GETROUTE;
            request->nlmsg_flags = NLM_F_REQUEST;
            auto* header = static_cast<rtmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(rtmsg)));
            header->rtm_family = v4 ? AF_INET : AF_INET6;
            header->rtm_dst_len = v4 ? 32 : 128;
            mnl_attr_put(request, RTA_DST, v4 ? 4 : 16, bytes.data() + (v4 ? 12 : 0));
        },
        [&](const nlmsghdr* message) {
            RouteAttributes attributes;
            if (message->nlmsg_type != RTM_NEWROUTE ||
                mnl_attr_parse(message, sizeof(rtmsg), attributes.take, &attributes) < 0 ||
                attributes.of[RTA_OIF] == nullptr)
                return;
            way = WayOut{interface_name(mnl_attr_get_u32(attributes.of[RTA_OIF])),
                         address_of(attributes.of[RTA_PREFSRC])};
        });
    return error == 0 ? way : std::nullopt;
}

std::vector<TcpSession> tcp_sessions_in(std::string_view text, const std::set<std::uint16_t>& our_ports) {
    constexpr std::string_view established = "01";
    std::vector<TcpSession> found;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string number, local, remote, state;
        words >> number >> local >> remote >> state;
        const std::optional<End> ours = parse_end(local), theirs = parse_end(remote);
        if (state == established && ours && theirs && our_ports.contains(ours->port))
            found.push_back({ours->address, theirs->address, ours->port, theirs->port});
    }
    return found;
}

Result<std::vector<TcpSession>> tcp_sessions(const std::set<std::uint16_t>& our_ports) {
    std::vector<TcpSession> all;
    for (const std::uint8_t family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}}) {
        std::vector<TcpSession> found;
        const int error = visit_tcp(
            family, 1U << TCP_ESTABLISHED, [&] { found.clear(); },
            [&](const inet_diag_msg& socket) {
                if (const TcpSession session = session_of(socket); our_ports.contains(session.our_port))
                    found.push_back(session);
            });
        if (error != 0)
            found = tcp_sessions_in(small_file_or_nothing(family == AF_INET ? "/proc/thread-self/net/tcp"
                                                                            : "/proc/thread-self/net/tcp6",
                                                          longest_socket_list),
                                    our_ports);
        all.insert(all.end(), found.begin(), found.end());
    }
    return all;
}

std::set<std::uint16_t> ports_of(std::string_view process) {
    std::set<std::uint16_t> ports;
    const std::set<std::uint32_t> inodes = sockets_of(process);
    if (inodes.empty()) return ports;
    for (const std::uint8_t family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}})
        static_cast<void>(visit_tcp(
            family, 1U << TCP_LISTEN, [] {},
            [&](const inet_diag_msg& socket) {
                if (inodes.contains(socket.idiag_inode)) ports.insert(ntohs(socket.id.idiag_sport));
            }));
    return ports;
}

} // namespace sieve::kernel
