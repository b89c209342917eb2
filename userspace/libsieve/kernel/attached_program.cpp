// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/attached_program.hpp"

#include <fcntl.h>
#include <linux/if_link.h>
#include <net/if.h>

#include <cerrno>
#include <memory>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <xdp/libxdp.h>

#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/refusal.hpp"

namespace sieve::kernel {

namespace {

Result<Program> open_program(std::uint32_t id) {
    Program program{.id = id, .name = {}, .fd = UniqueFd(bpf_prog_get_fd_by_id(id))};
    if (!program.fd) return refusal(fmt::format("opening XDP program {}", id), errno);
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(program.fd.get(), &info, &length); error != 0)
        return refusal(fmt::format("asking for the name of XDP program {}", id), error);
    program.name = info.name;
    return program;
}

// Sets what `hook` says of our program if `program` is one.
Status recognise(Hook& hook, Program& program) {
    Result<std::optional<Instance>> instance = Instance::from_program(program.fd.get());
    if (!instance) {
        if (!program.name.starts_with(SIEVE_PROGRAM)) return tl::unexpected(std::move(instance.error()));
        hook.other_version = std::move(instance.error().message);
    } else if (!*instance) {
        return {};
    } else {
        hook.instance = std::move(*instance);
    }
    hook.ours = Program{.id = program.id,
                        .name = program.name,
                        .fd = UniqueFd(::fcntl(program.fd.get(), F_DUPFD_CLOEXEC, 3))};
    return {};
}

Status look_behind_dispatcher(Hook& hook) {
    const LogCapture log; // libxdp complains about dispatchers of other versions; those are foreign to us
    xdp_multiprog* raw = xdp_multiprog__get_from_ifindex(static_cast<int>(hook.interface.index));
    if (libxdp_get_error(raw) != 0) return {};
    const std::unique_ptr<xdp_multiprog, decltype(&xdp_multiprog__close)> programs(raw, xdp_multiprog__close);
    if (xdp_multiprog__is_legacy(raw)) return {};
    for (xdp_program* next = xdp_multiprog__next_prog(nullptr, raw); next != nullptr && !hook.ours;
         next = xdp_multiprog__next_prog(next, raw)) {
        SIEVE_ASSIGN(Program program, open_program(xdp_program__id(next)));
        SIEVE_TRY(recognise(hook, program));
    }
    return {};
}

} // namespace

const char* mode_name(Mode mode) {
    switch (mode) {
    case Mode::native:
        return "native";
    case Mode::skb:
        return "skb";
    case Mode::offload:
        return "offload";
    }
    return "unknown";
}

Result<Interface> find_interface(const std::string& name) {
    const unsigned index = ::if_nametoindex(name.c_str());
    if (index == 0)
        return refusal(fmt::format("interface {}", name), errno,
                       "`ip link` lists the interfaces of this network namespace");
    return Interface{name, index};
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

Result<Hook> read_hook(const Interface& interface) {
    Hook hook;
    hook.interface = interface;
    LIBBPF_OPTS(bpf_xdp_query_opts, query);
    {
        const LogCapture log;
        if (const int error = bpf_xdp_query(static_cast<int>(interface.index), 0, &query); error != 0)
            return refusal(fmt::format("asking what runs on {}", interface.name), error);
    }
    std::uint32_t id = query.prog_id;
    if (query.attach_mode == XDP_ATTACHED_NONE) return hook;
    // With several modes at once the driver's comes first on a packet's way.
    if (query.attach_mode == XDP_ATTACHED_MULTI)
        id = query.drv_prog_id != 0 ? query.drv_prog_id : query.skb_prog_id;
    if (id == query.skb_prog_id && id != 0) hook.mode = Mode::skb;
    if (id == query.hw_prog_id && id != 0) hook.mode = Mode::offload;
    if (id == 0) return hook;

    SIEVE_ASSIGN(Program program, open_program(id));
    SIEVE_TRY(recognise(hook, program));
    const bool dispatcher = program.name == dispatcher_name;
    hook.attached = std::move(program);
    if (!hook.ours && dispatcher) SIEVE_TRY(look_behind_dispatcher(hook));
    return hook;
}

Result<Hook> find_ours(const std::string& name) {
    SIEVE_ASSIGN(const Interface interface, find_interface(name));
    SIEVE_ASSIGN(Hook hook, read_hook(interface));
    if (hook.foreign())
        return tl::unexpected(
            Error{Exit::no, fmt::format("{} runs another XDP program, {} (id {}), and not xdp-sieve", name,
                                        hook.attached->name.empty() ? "without a name" : hook.attached->name,
                                        hook.attached->id)});
    if (!hook.ours)
        return tl::unexpected(Error{
            Exit::no, fmt::format("{} has no xdp-sieve program; `xdp-sieve load {} NAME=FEED` attaches it",
                                  name, name)});
    if (!hook.instance) return kernel_refused(fmt::format("{}: {}", name, hook.other_version));
    return hook;
}

} // namespace sieve::kernel
