// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/xdp/attached_program.hpp"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include "libsieve/kernel/host/netlink.hpp"
#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::kernel::xdp {

namespace {

Status look_behind_dispatcher(Hook& hook, const Program& dispatcher) {
    SIEVE_ASSIGN(hook.members, dispatcher_members(dispatcher));
    for (DispatchedProgram& member : hook.members)
        if (!hook.ours) SIEVE_TRY(recognise(hook, member.program));
    return {};
}

// The ids of an interface's programs, by mode; 0: none.
struct ProgramIds {
    std::uint32_t native = 0;
    std::uint32_t skb = 0;
    std::uint32_t offload = 0;
};

ProgramIds program_ids(const nlmsghdr* link) {
    NetlinkAttributes<IFLA_XDP + 1> attributes;
    NetlinkAttributes<IFLA_XDP_HW_PROG_ID + 1> xdp;
    if (mnl_attr_parse(link, sizeof(ifinfomsg), attributes.take, &attributes) < 0 ||
        attributes.of[IFLA_XDP] == nullptr ||
        mnl_attr_parse_nested(attributes.of[IFLA_XDP], xdp.take, &xdp) < 0)
        return {};
    const auto id = [&](std::size_t mode) {
        return xdp.of[mode] != nullptr ? mnl_attr_get_u32(xdp.of[mode]) : 0;
    };
    return {.native = id(IFLA_XDP_DRV_PROG_ID),
            .skb = id(IFLA_XDP_SKB_PROG_ID),
            .offload = id(IFLA_XDP_HW_PROG_ID)};
}

// Asks the kernel what runs there. Returns 0, or an errno value. libbpf's bpf_xdp_query() lists all
// interfaces to find the one, which a host with hundreds of them feels.
int ask_kernel(const Interface& interface, ProgramIds& ids) {
    return ask_about_link(interface.index, [&](const nlmsghdr* link) { ids = program_ids(link); });
}

tl::unexpected<Error> not_told(const Interface& interface, int error) {
    return refusal(fmt::format("asking what runs on {}", interface.name), error);
}

// The id of the program that runs at the hook, whose mode the hook has then; 0: none.
Result<std::uint32_t> program_at(Hook& hook) {
    ProgramIds ids;
    const int error = ask_kernel(hook.interface, ids);
    if (error == ENODEV) return 0; // an interface that has gone runs nothing
    if (error != 0) return not_told(hook.interface, error);
    // If several modes have a program, the driver's sees the packet first.
    if (ids.native != 0) return ids.native;
    if (ids.skb != 0) hook.mode = Mode::skb;
    if (ids.skb != 0) return ids.skb;
    if (ids.offload != 0) hook.mode = Mode::offload;
    return ids.offload;
}

// Reads the hook once and returns the id of the program that it found.
Result<std::uint32_t> look(Hook& hook) {
    SIEVE_ASSIGN(const std::uint32_t id, program_at(hook));
    if (id == 0) return 0;
    SIEVE_ASSIGN(Program program, open_program(id));
    SIEVE_TRY(recognise(hook, program));
    if (!hook.ours) SIEVE_TRY(look_behind_dispatcher(hook, program));
    hook.attached = std::move(program);
    return id;
}

} // namespace

// libxdp replaces the dispatcher whenever a program joins or leaves. A reader at that moment may see the old
// dispatcher without its programs, or no dispatcher at all. So a reading counts only if the same program is
// still attached after it.
Result<Hook> read_hook(const Interface& interface) {
    constexpr int attempts = 20;
    for (int attempt = 1;; attempt++) {
        Hook hook;
        hook.interface = interface;
        Result<std::uint32_t> seen = look(hook);
        Hook after;
        after.interface = interface;
        SIEVE_ASSIGN(const std::uint32_t now, program_at(after));
        if (seen && (*seen == now || attempt == attempts)) return hook;
        if (!seen && attempt == attempts) return tl::unexpected(std::move(seen.error()));
    }
}

Result<std::uint32_t> program_in_mode(const Interface& interface, Mode mode) {
    ProgramIds ids;
    if (const int error = ask_kernel(interface, ids); error != 0) return not_told(interface, error);
    switch (mode) {
    case Mode::native:
        return ids.native;
    case Mode::skb:
        return ids.skb;
    case Mode::offload:
        return ids.offload;
    }
    return 0;
}

} // namespace sieve::kernel::xdp
