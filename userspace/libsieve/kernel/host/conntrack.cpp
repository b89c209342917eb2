// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/conntrack.hpp"

#include <arpa/inet.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>

#include <cerrno>
#include <optional>
#include <string>

#include "libsieve/kernel/host/netlink.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/system/small_file.hpp"

namespace sieve::kernel {

namespace {

// The file is there as soon as the module is, and belongs to the reader's network namespace.
constexpr const char* count_file = "/proc/sys/net/netfilter/nf_conntrack_count";
constexpr std::size_t longest_count = 64;

template <std::size_t types>
std::optional<NetlinkAttributes<types>> nested(const nlattr* attribute) {
    NetlinkAttributes<types> inside;
    if (attribute == nullptr || mnl_attr_parse_nested(attribute, inside.take, &inside) < 0)
        return std::nullopt;
    return inside;
}

std::uint16_t port_of(const nlattr* attribute) {
    if (attribute == nullptr || mnl_attr_get_payload_len(attribute) != sizeof(std::uint16_t)) return 0;
    return ntohs(mnl_attr_get_u16(attribute));
}

struct Tuple {
    Direction direction{};
    std::uint8_t protocol = 0;
};

std::optional<Tuple> tuple_of(const nlattr* attribute) {
    const auto tuple = nested<CTA_TUPLE_MAX + 1>(attribute);
    if (!tuple) return std::nullopt;
    const auto addresses = nested<CTA_IP_MAX + 1>(tuple->of[CTA_TUPLE_IP]);
    const auto transport = nested<CTA_PROTO_MAX + 1>(tuple->of[CTA_TUPLE_PROTO]);
    if (!addresses || !transport || transport->of[CTA_PROTO_NUM] == nullptr) return std::nullopt;
    const bool v4 = addresses->of[CTA_IP_V4_SRC] != nullptr;
    const auto from = address_of(addresses->of[v4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC]);
    const auto to = address_of(addresses->of[v4 ? CTA_IP_V4_DST : CTA_IP_V6_DST]);
    if (!from || !to) return std::nullopt;
    return Tuple{.direction = {.from = *from,
                               .to = *to,
                               .from_port = port_of(transport->of[CTA_PROTO_SRC_PORT]),
                               .to_port = port_of(transport->of[CTA_PROTO_DST_PORT])},
                 .protocol = mnl_attr_get_u8(transport->of[CTA_PROTO_NUM])};
}

bool is_established(const nlattr* attribute) {
    const auto info = nested<CTA_PROTOINFO_MAX + 1>(attribute);
    if (!info) return false;
    const auto tcp = nested<CTA_PROTOINFO_TCP_MAX + 1>(info->of[CTA_PROTOINFO_TCP]);
    if (!tcp || tcp->of[CTA_PROTOINFO_TCP_STATE] == nullptr) return false;
    const std::uint8_t state = mnl_attr_get_u8(tcp->of[CTA_PROTOINFO_TCP_STATE]);
    return state == TCP_CONNTRACK_ESTABLISHED || state == TCP_CONNTRACK_FIN_WAIT ||
           state == TCP_CONNTRACK_CLOSE_WAIT;
}

void take_flow(const nlmsghdr* message, std::vector<TrackedFlow>& to) {
    NetlinkAttributes<CTA_MAX + 1> attributes;
    if (mnl_nlmsg_get_payload_len(message) < sizeof(nfgenmsg) ||
        mnl_attr_parse(message, sizeof(nfgenmsg), attributes.take, &attributes) < 0)
        return;
    const auto begun = tuple_of(attributes.of[CTA_TUPLE_ORIG]);
    const auto answered = tuple_of(attributes.of[CTA_TUPLE_REPLY]);
    if (!begun || !answered) return;
    to.push_back({.protocol = begun->protocol,
                  .begun = begun->direction,
                  .answered = answered->direction,
                  .established = is_established(attributes.of[CTA_PROTOINFO])});
}

} // namespace

Result<std::vector<TrackedFlow>> tracked_flows() {
    std::vector<TrackedFlow> found;
    const std::string count = small_file_or_nothing(count_file, longest_count);
    if (count.empty() || count == "0\n") return found;
    const int error = dump_netlink(
        NETLINK_NETFILTER,
        [](nlmsghdr* request) {
            request->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET;
            request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
            auto* header = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(nfgenmsg)));
            header->nfgen_family = AF_UNSPEC;
            header->version = NFNETLINK_V0;
        },
        [&] { found.clear(); }, [&](const nlmsghdr* message) { take_flow(message, found); });
    // A kernel with nf_conntrack and without its netlink interface.
    if (error == EPROTONOSUPPORT || error == EINVAL || error == EOPNOTSUPP) return std::vector<TrackedFlow>();
    if (error != 0) return refusal("asking for tracked flows", error);
    return found;
}

} // namespace sieve::kernel
