// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/interface.hpp"

#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>

#include <fmt/core.h>

#include "libsieve/kernel/host/device.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

namespace {

// linux/if_arp.h defines these, but it cannot be included together with net/if_arp.h.
constexpr unsigned hardware_raw_ip = 519;
constexpr unsigned hardware_none = 0xfffe; // tun, WireGuard

// Asks the kernel about an interface; returns 0 or an errno value.
int ask(const Interface& interface, unsigned long what, ifreq& request) {
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    request = {};
    interface.name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
    return socket && ::ioctl(socket.get(), what, &request) == 0 ? 0 : errno;
}

} // namespace

Result<Interface> find_interface(const std::string& name) {
    const unsigned index = ::if_nametoindex(name.c_str());
    if (index == 0)
        return refusal(fmt::format("interface {}", name), errno,
                       "`ip link` lists the interfaces of this network namespace");
    // An alternative name (`ip link property add ... altname`) finds the interface, too. Whoever compares
    // names, such as a pause or the question of who is connected through it, knows only the other one.
    std::array<char, IF_NAMESIZE> own{};
    return Interface{::if_indextoname(index, own.data()) != nullptr ? own.data() : name, index};
}

std::vector<Interface> all_interfaces() {
    std::vector<Interface> interfaces;
    const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> list(::if_nameindex(),
                                                                                   ::if_freenameindex);
    if (!list) return interfaces;
    for (const struct if_nameindex* entry = list.get(); entry->if_index != 0; entry++)
        interfaces.push_back({entry->if_name, entry->if_index});
    return interfaces;
}

int interface_mtu(const Interface& interface) {
    ifreq request{};
    return ask(interface, SIOCGIFMTU, request) == 0 ? request.ifr_mtu : 0;
}

std::optional<sieve_link> link_of_hardware(unsigned type) {
    switch (type) {
    case ARPHRD_ETHER:
    case ARPHRD_LOOPBACK:
        return SIEVE_LINK_ETHERNET;
    case ARPHRD_PPP: // two bytes of protocol: removed before tc on arrival, added after tc on departure
    case ARPHRD_TUNNEL:
    case ARPHRD_TUNNEL6:
    case ARPHRD_SIT:
    case hardware_raw_ip:
    case hardware_none:
        return SIEVE_LINK_IP;
    default:
        return std::nullopt;
    }
}

Result<sieve_link> interface_link(const Interface& interface) {
    ifreq request{};
    if (const int error = ask(interface, SIOCGIFHWADDR, request); error != 0)
        return refusal(fmt::format("asking for {}'s hardware type", interface.name), error);
    const unsigned type = request.ifr_hwaddr.sa_family;
    const std::optional<sieve_link> link = link_of_hardware(type);
    if (!link)
        return kernel_refused(
            fmt::format("{} has hardware type {} (ARPHRD_*), whose packets xdp-sieve cannot "
                        "read; expected Ethernet or an interface that carries bare IP",
                        interface.name, type));
    // Linux believes the writer: what looks like IPv6 may be an IPv4 packet behind a VLAN tag.
    if (*link == SIEVE_LINK_IP && states_protocol(interface.index))
        return kernel_refused(fmt::format(
            "{} is a tun device whose packets' protocol is stated beside them, where xdp-sieve cannot "
            "read it; expected one with IFF_NO_PI, as `ip tuntap add` makes it",
            interface.name));
    return *link;
}

} // namespace sieve::kernel
