// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/netlink.hpp"

#include <cerrno>
#include <memory>

namespace sieve::kernel {

namespace {

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

} // namespace sieve::kernel
