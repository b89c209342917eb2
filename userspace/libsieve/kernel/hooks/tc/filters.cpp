// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/tc/filters.hpp"

#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

#include <fmt/core.h>

#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::kernel::tc {

namespace {

using Socket = std::unique_ptr<mnl_socket, decltype(&::mnl_socket_close)>;

std::uint32_t parent_of(HookPoint point) {
    return TC_H_MAKE(TC_H_CLSACT, point == HookPoint::ingress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

// The attributes of a message, or those nested in one attribute, by type.
struct Attributes {
    static constexpr std::size_t types = TCA_MAX + 1;
    static_assert(TCA_BPF_MAX < types);
    std::array<const nlattr*, types> of{};

    static int take(const nlattr* attribute, void* to) {
        const std::uint16_t type = mnl_attr_get_type(attribute);
        if (type < types) static_cast<Attributes*>(to)->of[type] = attribute;
        return MNL_CB_OK;
    }
    [[nodiscard]] std::uint32_t number(std::size_t type) const {
        return of[type] == nullptr ? 0 : mnl_attr_get_u32(of[type]);
    }
    [[nodiscard]] std::string_view text(std::size_t type) const {
        return of[type] == nullptr ? "" : mnl_attr_get_str(of[type]);
    }
};

int take_filter(const nlmsghdr* message, void* to) {
    const auto* header = static_cast<const tcmsg*>(mnl_nlmsg_get_payload(message));
    Attributes attributes;
    if (message->nlmsg_type != RTM_NEWTFILTER ||
        mnl_attr_parse(message, sizeof(*header), attributes.take, &attributes) < 0)
        return MNL_CB_OK;
    // The first message of each priority describes the priority itself: it has neither a handle nor options.
    // That is enough of other kinds, whose filters the next messages describe.
    TcFilter filter{.priority = TC_H_MAJ(header->tcm_info) >> 16,
                    .kind = std::string(attributes.text(TCA_KIND)),
                    .handle = header->tcm_handle};
    const nlattr* const options = attributes.of[TCA_OPTIONS];
    if (attributes.number(TCA_CHAIN) != 0 || (filter.kind == "bpf") != (options != nullptr)) return MNL_CB_OK;
    if (options != nullptr) {
        Attributes bpf;
        mnl_attr_parse_nested(options, bpf.take, &bpf);
        filter.program_id = bpf.number(TCA_BPF_ID);
        filter.name = bpf.text(TCA_BPF_NAME);
        filter.direct_action = (bpf.number(TCA_BPF_FLAGS) & TCA_BPF_FLAG_ACT_DIRECT) != 0;
    }
    static_cast<std::vector<TcFilter>*>(to)->push_back(std::move(filter));
    return MNL_CB_OK;
}

int take_discipline(const nlmsghdr* message, void* to) {
    Attributes attributes;
    if (message->nlmsg_type == RTM_NEWQDISC &&
        mnl_attr_parse(message, sizeof(tcmsg), attributes.take, &attributes) >= 0)
        *static_cast<std::string*>(to) = attributes.text(TCA_KIND);
    return MNL_CB_OK;
}

// Asks what the interface has under a parent, and has `take` put each answer into `to`. Returns 0 or an errno
// value; EINTR if what is listed changed meanwhile.
int ask(const Interface& interface, std::uint32_t parent, std::uint16_t type, std::uint16_t flags,
        mnl_cb_t take, void* to) {
    const Socket socket(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC), ::mnl_socket_close);
    if (!socket || mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0) return errno;
    std::array<char, 32768> buffer{}; // the kernel puts no more into one part of a dump
    nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
    request->nlmsg_type = type;
    request->nlmsg_flags = NLM_F_REQUEST | flags;
    request->nlmsg_seq = 1;
    auto* header = static_cast<tcmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(tcmsg)));
    header->tcm_ifindex = static_cast<int>(interface.index);
    header->tcm_parent = parent;
    if (mnl_socket_sendto(socket.get(), request, request->nlmsg_len) < 0) return errno;
    for (;;) {
        const ssize_t got = mnl_socket_recvfrom(socket.get(), buffer.data(), buffer.size());
        if (got < 0) return errno;
        const int result = mnl_cb_run(buffer.data(), static_cast<std::size_t>(got), 1,
                                      mnl_socket_get_portid(socket.get()), take, to);
        if (result < 0) return errno;
        if (result == MNL_CB_STOP) return 0;
    }
}

} // namespace

int read_discipline(const Interface& interface, std::string& kind) {
    // Linux echoes its answer to this request.
    const int error =
        ask(interface, TC_H_CLSACT, RTM_GETQDISC, NLM_F_ECHO | NLM_F_ACK, take_discipline, &kind);
    return error == ENOENT || error == EINVAL ? 0 : error; // there is none
}

Result<std::vector<TcFilter>> list_filters(const Interface& interface, HookPoint point) {
    constexpr int attempts = 20;
    for (int attempt = 1;; attempt++) {
        std::vector<TcFilter> filters;
        std::string discipline;
        int error = ask(interface, parent_of(point), RTM_GETTFILTER, NLM_F_DUMP, take_filter, &filters);
        if (error == 0 && point == HookPoint::egress && !filters.empty())
            error = read_discipline(interface, discipline);
        if (error == 0) return discipline == only_ingress ? std::vector<TcFilter>() : filters;
        if (error != EINTR || attempt == attempts)
            return refusal(fmt::format("listing {}'s tc filters", interface.name), error);
    }
}

Result<Hook> read_hook(const Interface& interface, HookPoint point) {
    Hook hook;
    hook.interface = interface;
    hook.point = point;
    SIEVE_ASSIGN(hook.filters, list_filters(interface, point));
    for (const TcFilter& filter : hook.filters) {
        Result<Program> program = open_program(filter.program_id);
        if (!program) continue; // it is of another kind, or has gone meanwhile
        SIEVE_TRY(recognise(hook, *program));
        if (!hook.ours) continue;
        hook.attached = std::move(*program);
        if (!filter.direct_action) {
            hook.instance.reset();
            hook.other_version =
                fmt::format("the program (id {}) is attached without direct-action, so that its "
                            "verdicts have no effect; add it with `tc filter add ... bpf da`",
                            filter.program_id);
        }
        break;
    }
    return hook;
}

} // namespace sieve::kernel::tc
