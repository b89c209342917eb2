// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/host_network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>

#include <fmt/core.h>

#include "libsieve/kernel/host/netlink.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

namespace {

constexpr std::size_t longest_name = 64; // of a process

std::string interface_name(std::uint32_t index) {
    std::array<char, IF_NAMESIZE> name{};
    return ::if_indextoname(index, name.data()) != nullptr ? name.data() : "";
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

TcpSession session_of(const Socket& socket) {
    return {.ours = socket.ours,
            .theirs = socket.theirs,
            .our_port = socket.our_port,
            .their_port = socket.their_port};
}

// The name of a process, by its number; empty if it has ended. There are hundreds of processes, so each costs
// no more than it must.
std::string name_of(const std::filesystem::path& process) {
    const UniqueFd file(::open((process / "comm").c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, longest_name> name{};
    const ssize_t size = file ? ::read(file.get(), name.data(), name.size()) : 0;
    return size > 0 ? std::string(name.data(), static_cast<std::size_t>(size) - 1) : std::string(); // "\n"
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
        if (name_of(entry->path()) != process) continue;
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
    const int error = dump_netlink(
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
            const std::uint32_t flags = attributes.of[IFA_FLAGS] != nullptr
                                            ? mnl_attr_get_u32(attributes.of[IFA_FLAGS])
                                            : header->ifa_flags;
            // Addresses of IPv6 with a shorter prefix end, too, but routers' advertisements renew them.
            const bool leased = (flags & IFA_F_PERMANENT) == 0 &&
                                (header->ifa_family == AF_INET || header->ifa_prefixlen == 128);
            if (const auto address = address_of(ours); address && header->ifa_scope != RT_SCOPE_HOST)
                found.push_back({*address, interface_name(header->ifa_index), leased});
        });
    if (error != 0) return refusal("asking for this host's addresses", error);
    return found;
}

Result<std::vector<PlacedAddress>> gateways() {
    std::vector<PlacedAddress> found;
    std::vector<PlacedAddress> neighbours;
    if (const int error = dump_netlink(
            NETLINK_ROUTE, all_of<rtmsg>(RTM_GETROUTE), [&] { found.clear(); },
            [&](const nlmsghdr* message) { take_route(message, found); });
        error != 0)
        return refusal("asking for this host's routes", error);
    if (const int error = dump_netlink(
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

std::vector<Socket> tcp_sockets() {
    return sockets(IPPROTO_TCP, 1U << TCP_ESTABLISHED | 1U << TCP_LISTEN);
}

std::vector<TcpSession> sessions_among(const std::vector<Socket>& sockets,
                                       const std::set<std::uint16_t>& our_ports) {
    std::vector<TcpSession> found;
    for (const Socket& socket : sockets)
        if (socket.state == TCP_ESTABLISHED && our_ports.contains(socket.our_port))
            found.push_back(session_of(socket));
    return found;
}

std::set<std::uint16_t> ports_of(std::string_view process, const std::vector<Socket>& sockets) {
    std::set<std::uint16_t> ports;
    const std::set<std::uint32_t> inodes = sockets_of(process);
    for (const Socket& socket : sockets)
        if (socket.state == TCP_LISTEN && inodes.contains(socket.inode)) ports.insert(socket.our_port);
    return ports;
}

} // namespace sieve::kernel
