// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/xdp/attached_program.hpp"

#include <linux/if_link.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/refusal.hpp"

namespace sieve::kernel::xdp {

namespace {

Status look_behind_dispatcher(Hook& hook, const Program& dispatcher) {
    SIEVE_ASSIGN(hook.members, dispatcher_members(dispatcher));
    for (DispatchedProgram& member : hook.members)
        if (!hook.ours) SIEVE_TRY(recognise(hook, member.program));
    return {};
}

// Asks the kernel which program runs there; returns its id, or 0 if there is none.
Result<std::uint32_t> ask_kernel(Hook& hook) {
    LIBBPF_OPTS(bpf_xdp_query_opts, query);
    {
        const LogCapture log;
        if (const int error = bpf_xdp_query(static_cast<int>(hook.interface.index), 0, &query); error != 0)
            return refusal(fmt::format("asking what runs on {}", hook.interface.name), error);
    }
    std::uint32_t id = query.prog_id;
    if (query.attach_mode == XDP_ATTACHED_NONE) return 0;
    // If several modes have a program, the driver's sees the packet first.
    if (query.attach_mode == XDP_ATTACHED_MULTI)
        id = query.drv_prog_id != 0 ? query.drv_prog_id : query.skb_prog_id;
    if (id == query.skb_prog_id && id != 0) hook.mode = Mode::skb;
    if (id == query.hw_prog_id && id != 0) hook.mode = Mode::offload;
    return id;
}

// Reads the hook once and returns the id of the program that it found.
Result<std::uint32_t> look(Hook& hook) {
    SIEVE_ASSIGN(const std::uint32_t id, ask_kernel(hook));
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
        SIEVE_ASSIGN(const std::uint32_t now, ask_kernel(after));
        if (seen && (*seen == now || attempt == attempts)) return hook;
        if (!seen && attempt == attempts) return tl::unexpected(std::move(seen.error()));
    }
}

} // namespace sieve::kernel::xdp
