// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/netlink.hpp"

#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstdint>
#include <memory>

namespace sieve::kernel {

namespace {

constexpr int attempts = 5;

int take_message(const nlmsghdr* message, void* to) {
    (*static_cast<const TakeMessage*>(to))(message);
    return MNL_CB_OK;
}

} // namespace

int ask_netlink(int family, const FillRequest& fill, const TakeMessage& take) {
    const std::unique_ptr<mnl_socket, decltype(&::mnl_socket_close)> socket(
        mnl_socket_open2(family, SOCK_CLOEXEC), ::mnl_socket_close);
    if (!socket || mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0) return errno;
    std::array<char, 32768> buffer{}; // the kernel puts no more into one part of a dump
    nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
    request->nlmsg_seq = 1;
    fill(request);
    const bool one_message = (request->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP;
    if (mnl_socket_sendto(socket.get(), request, request->nlmsg_len) < 0) return errno;
    for (;;) {
        const ssize_t got = mnl_socket_recvfrom(socket.get(), buffer.data(), buffer.size());
        if (got < 0) return errno;
        TakeMessage to = take;
        const int more = mnl_cb_run(buffer.data(), static_cast<std::size_t>(got), 1,
                                    mnl_socket_get_portid(socket.get()), take_message, &to);
        if (more < 0) return errno;
        if (more == MNL_CB_STOP || one_message) return 0;
    }
}

int dump_netlink(int family, const FillRequest& fill, const std::function<void()>& begin,
                 const TakeMessage& take) {
    int error = EINTR;
    for (int attempt = 0; attempt < attempts && error == EINTR; attempt++) {
        begin();
        error = ask_netlink(family, fill, take);
    }
    return error;
}

int ask_about_link(std::uint32_t index, const TakeMessage& take) {
    const auto fill = [index](nlmsghdr* request) {
        request->nlmsg_type = RTM_GETLINK;
        request->nlmsg_flags = NLM_F_REQUEST;
        auto* header = static_cast<ifinfomsg*>(mnl_nlmsg_put_extra_header(request, sizeof(ifinfomsg)));
        header->ifi_index = static_cast<int>(index);
        mnl_attr_put_u32(request, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    };
    return ask_netlink(NETLINK_ROUTE, fill, take);
}

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

} // namespace sieve::kernel
