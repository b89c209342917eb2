// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/device.hpp"

#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "libsieve/kernel/host/netlink.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

namespace {

// Defined in linux/netdev.h since Linux 6.3.
constexpr const char* netdev_family = "netdev";
constexpr std::uint8_t netdev_cmd_dev_get = 1;
constexpr std::uint16_t netdev_a_dev_ifindex = 1, netdev_a_dev_xdp_features = 3;
constexpr std::uint64_t xdp_act_basic = 1 << 0, xdp_act_ndo_xmit = 1 << 2, xdp_act_ndo_xmit_sg = 1 << 6;

// A libmnl callback: calls the Take object that `to` points to with an attribute.
template <class Take>
int hand_over(const nlattr* attribute, void* to) {
    (*static_cast<Take*>(to))(attribute);
    return MNL_CB_OK;
}

// Calls `take(attribute)` for each attribute behind a message's fixed header, or nested in an attribute.
template <class Take>
void each_attribute(const nlmsghdr* message, std::size_t header, Take take) {
    mnl_attr_parse(message, static_cast<unsigned>(header), hand_over<Take>, &take);
}
template <class Take>
void each_attribute(const nlattr* nest, Take take) {
    mnl_attr_parse_nested(nest, hand_over<Take>, &take);
}

// --- rtnetlink

struct Link {
    unsigned flags = 0;
    unsigned type = 0;
    int mtu = 0;
    std::string kind;                     // "veth", "tun"; empty for hardware
    bool states_protocol = false;         // tun without IFF_NO_PI
    std::optional<std::uint32_t> partner; // index of the peer, if it is in this network namespace
};

void take_link(const nlmsghdr* message, Link& link) {
    const auto* header = static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(message));
    link.flags = header->ifi_flags;
    link.type = header->ifi_type;
    bool elsewhere = false;
    each_attribute(message, sizeof(*header), [&](const nlattr* attribute) {
        switch (mnl_attr_get_type(attribute)) {
        case IFLA_MTU:
            link.mtu = static_cast<int>(mnl_attr_get_u32(attribute));
            break;
        case IFLA_LINK:
            link.partner = mnl_attr_get_u32(attribute);
            break;
        case IFLA_LINK_NETNSID:
            elsewhere = true;
            break;
        case IFLA_LINKINFO:
            each_attribute(attribute, [&](const nlattr* inner) {
                if (mnl_attr_get_type(inner) == IFLA_INFO_KIND) link.kind = mnl_attr_get_str(inner);
                // The kind comes before its data.
                if (mnl_attr_get_type(inner) == IFLA_INFO_DATA && link.kind == "tun")
                    each_attribute(inner, [&](const nlattr* of_tun) {
                        if (mnl_attr_get_type(of_tun) == IFLA_TUN_PI)
                            link.states_protocol = mnl_attr_get_u8(of_tun) != 0;
                    });
            });
            break;
        default:
            break;
        }
    });
    if (elsewhere) link.partner.reset();
}

int read_link(std::uint32_t index, Link& link) {
    return ask_about_link(index, [&](const nlmsghdr* message) { take_link(message, link); });
}

// --- generic netlink: the family "netdev"

// Asks a family with one attribute, which `put` writes, and calls `take` with each attribute of the answer.
int ask_generic(std::uint16_t family, std::uint8_t command, const FillRequest& put,
                const std::function<void(const nlattr* attribute)>& take) {
    const auto fill = [&](nlmsghdr* request) {
        request->nlmsg_type = family;
        request->nlmsg_flags = NLM_F_REQUEST;
        auto* header = static_cast<genlmsghdr*>(mnl_nlmsg_put_extra_header(request, sizeof(genlmsghdr)));
        header->cmd = command;
        header->version = 1;
        put(request);
    };
    return ask_netlink(NETLINK_GENERIC, fill,
                       [&](const nlmsghdr* message) { each_attribute(message, sizeof(genlmsghdr), take); });
}

std::optional<std::uint16_t> find_family(const char* name) {
    std::optional<std::uint16_t> family;
    const int error = ask_generic(
        GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
        [name](nlmsghdr* request) { mnl_attr_put_strz(request, CTRL_ATTR_FAMILY_NAME, name); },
        [&](const nlattr* attribute) {
            if (mnl_attr_get_type(attribute) == CTRL_ATTR_FAMILY_ID) family = mnl_attr_get_u16(attribute);
        });
    return error == 0 ? family : std::nullopt;
}

std::optional<XdpFeatures> read_xdp_features(std::uint32_t index) {
    const std::optional<std::uint16_t> family = find_family(netdev_family);
    if (!family) return std::nullopt;
    std::optional<std::uint64_t> features;
    const int error = ask_generic(
        *family, netdev_cmd_dev_get,
        [index](nlmsghdr* request) { mnl_attr_put_u32(request, netdev_a_dev_ifindex, index); },
        [&](const nlattr* attribute) {
            if (mnl_attr_get_type(attribute) == netdev_a_dev_xdp_features)
                features = mnl_attr_get_u64(attribute);
        });
    if (error != 0 || !features) return std::nullopt;
    return XdpFeatures{.native = (*features & xdp_act_basic) != 0,
                       .sends = (*features & xdp_act_ndo_xmit) != 0,
                       .sends_long = (*features & xdp_act_ndo_xmit_sg) != 0};
}

// --- ethtool
// ------------------------------------------------------------------------------------------------

// True if senders leave checksums to the interface (`ethtool -K IFACE tx on`). Nothing if the driver does not
// say.
std::optional<bool> takes_checksums(std::uint32_t index) {
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    request.ifr_ifindex = static_cast<int>(index);
    if (!socket || ::ioctl(socket.get(), SIOCGIFNAME, &request) != 0) return std::nullopt;
    ethtool_value value{.cmd = ETHTOOL_GTXCSUM, .data = 0};
    request.ifr_data = reinterpret_cast<char*>(&value);
    if (::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return std::nullopt;
    return value.data != 0;
}

// A veth passes on what was sent into its other end; a tap passes on what a virtual machine wrote. Both may
// lack checksums. Other drivers either receive whole frames from a wire or have checksums finished while a
// program is attached (virtio_net).
bool may_lack_checksums(const Link& link) {
    if (link.kind == "veth") return !link.partner || takes_checksums(*link.partner).value_or(true);
    return link.kind == "tun";
}

} // namespace

Result<Device> read_device(const Interface& interface) {
    Link link;
    if (const int error = read_link(interface.index, link); error != 0)
        return refusal(fmt::format("asking about interface {}", interface.name), error);
    const bool bare = link.type != ARPHRD_ETHER;
    return Device{.up = (link.flags & IFF_UP) != 0,
                  .carrier = (link.flags & IFF_LOWER_UP) != 0,
                  .mtu = link.mtu,
                  .link = bare && link.states_protocol ? std::nullopt : link_of_hardware(link.type),
                  .xdp = read_xdp_features(interface.index),
                  .unfinished_checksums = may_lack_checksums(link),
                  .tap = !bare && link.kind == "tun"};
}

bool states_protocol(std::uint32_t index) {
    Link link;
    return read_link(index, link) == 0 && link.type != ARPHRD_ETHER && link.states_protocol;
}

bool is_up(std::uint32_t index) {
    Link link;
    return read_link(index, link) != 0 || (link.flags & IFF_UP) != 0;
}

} // namespace sieve::kernel
