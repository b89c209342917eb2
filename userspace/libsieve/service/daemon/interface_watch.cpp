// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/interface_watch.hpp"

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

namespace sieve::service {

namespace {

// What one call of mnl_cb_run() works on.
struct Taking {
    InterfaceNames* names;
    InterfaceChange* change;
};

int take_name(const nlattr* attribute, void* to) {
    if (mnl_attr_get_type(attribute) == IFLA_IFNAME && mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) >= 0)
        *static_cast<std::string*>(to) = mnl_attr_get_str(attribute);
    return MNL_CB_OK;
}

// What leaves an interface is noted by a filter of tc (kernel/hooks/noting.hpp), which anybody may take away.
void take_lost_filter(const nlmsghdr* message, const Taking& taking) {
    if (mnl_nlmsg_get_payload_len(message) < sizeof(tcmsg)) return;
    const auto* header = static_cast<const tcmsg*>(mnl_nlmsg_get_payload(message));
    const bool egress = header->tcm_parent == TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
    if (message->nlmsg_type == RTM_DELQDISC || egress)
        taking.names->lost_filter(static_cast<std::uint32_t>(header->tcm_ifindex), *taking.change);
}

int take_message(const nlmsghdr* message, void* to) {
    const auto& taking = *static_cast<Taking*>(to);
    if (message->nlmsg_type == RTM_DELTFILTER || message->nlmsg_type == RTM_DELQDISC)
        take_lost_filter(message, taking);
    if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK) return MNL_CB_OK;
    if (mnl_nlmsg_get_payload_len(message) < sizeof(ifinfomsg)) return MNL_CB_OK;
    const auto* header = static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(message));
    if (header->ifi_family != AF_UNSPEC) return MNL_CB_OK; // a bridge's word on its port
    std::string name;
    mnl_attr_parse(message, sizeof(*header), take_name, &name);
    const auto index = static_cast<std::uint32_t>(header->ifi_index);
    if (message->nlmsg_type == RTM_NEWLINK)
        taking.names->is_there(index, name, *taking.change);
    else
        taking.names->is_gone(index, name, *taking.change);
    return MNL_CB_OK;
}

tl::unexpected<Error> no_watch(const char* what) {
    return kernel_refused(fmt::format("watching interfaces: {}: {}", what, errno_text(errno)));
}

} // namespace

void InterfaceNames::is_there(std::uint32_t index, const std::string& name, InterfaceChange& change) {
    std::string& known = names_[index];
    if (known == name) return;
    if (!known.empty()) change.names.insert(known);
    change.names.insert(name);
    known = name;
}

void InterfaceNames::is_gone(std::uint32_t index, const std::string& name, InterfaceChange& change) {
    if (const auto found = names_.find(index); found != names_.end()) {
        change.names.insert(found->second);
        names_.erase(found);
    }
    if (!name.empty()) change.names.insert(name);
}

void InterfaceNames::lost_filter(std::uint32_t index, InterfaceChange& change) {
    if (const auto found = names_.find(index); found != names_.end()) change.names.insert(found->second);
}

void InterfaceWatch::Close::operator()(mnl_socket* socket) const {
    ::mnl_socket_close(socket);
}

InterfaceWatch::InterfaceWatch(Changed changed) : changed_(std::move(changed)) {}

Result<std::unique_ptr<InterfaceWatch>> InterfaceWatch::start(EventLoop& loop, Changed changed) {
    std::unique_ptr<InterfaceWatch> watch(new InterfaceWatch(std::move(changed)));
    SIEVE_TRY(watch->open());
    InterfaceWatch* self = watch.get();
    SIEVE_ASSIGN(watch->source_,
                 loop.on_readable(mnl_socket_get_fd(watch->socket_.get()), [self] { self->read(); }));
    return watch;
}

Status InterfaceWatch::open() {
    socket_.reset(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket_) return no_watch("socket");
    if (mnl_socket_bind(socket_.get(), RTMGRP_LINK | RTMGRP_TC, MNL_SOCKET_AUTOPID) < 0)
        return no_watch("bind");
    know_all(); // after this, the messages of later changes are in the socket
    return {};
}

void InterfaceWatch::know_all() {
    names_.forget_all();
    struct if_nameindex* all = ::if_nameindex();
    if (all == nullptr) return;
    for (const struct if_nameindex* one = all; one->if_index != 0; one++)
        names_.know(one->if_index, one->if_name);
    ::if_freenameindex(all);
}

void InterfaceWatch::read() {
    InterfaceChange change;
    Taking taking{&names_, &change};
    std::array<char, 32768> buffer; // the kernel puts no more into one message
    for (;;) {
        const ssize_t got = mnl_socket_recvfrom(socket_.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == ENOBUFS || errno == ENOSPC)) {
            change.everything = true;
            know_all();
            continue;
        }
        if (got <= 0) break;
        mnl_cb_run(buffer.data(), static_cast<std::size_t>(got), 0, 0, take_message, &taking);
    }
    if (change.everything || !change.names.empty()) changed_(change);
}

} // namespace sieve::service
