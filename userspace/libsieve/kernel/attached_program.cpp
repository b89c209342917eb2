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

#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/refusal.hpp"

namespace sieve::kernel {

namespace {

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

Status look_behind_dispatcher(Hook& hook, const Program& dispatcher) {
    hook.members = dispatcher_members(dispatcher);
    for (DispatcherMember& member : hook.members)
        if (!hook.ours) SIEVE_TRY(recognise(hook, member.program));
    return {};
}

// What the kernel runs there, by id; 0 for nothing.
Result<std::uint32_t> ask_kernel(Hook& hook) {
    LIBBPF_OPTS(bpf_xdp_query_opts, query);
    {
        const LogCapture log;
        if (const int error = bpf_xdp_query(static_cast<int>(hook.interface.index), 0, &query); error != 0)
            return refusal(fmt::format("asking what runs on {}", hook.interface.name), error);
    }
    std::uint32_t id = query.prog_id;
    if (query.attach_mode == XDP_ATTACHED_NONE) return 0;
    // With several modes at once the driver's comes first on a packet's way.
    if (query.attach_mode == XDP_ATTACHED_MULTI)
        id = query.drv_prog_id != 0 ? query.drv_prog_id : query.skb_prog_id;
    if (id == query.skb_prog_id && id != 0) hook.mode = Mode::skb;
    if (id == query.hw_prog_id && id != 0) hook.mode = Mode::offload;
    return id;
}

// Looks once; the id of the program that it saw.
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

std::optional<DispatcherPlace> Hook::place() const {
    for (const DispatcherMember& member : members)
        if (ours && member.program.id == ours->id) return member.place;
    return std::nullopt;
}

// A dispatcher is replaced by another one whenever a program joins or leaves; who looks right then may see
// the old one without its programs, or miss it. So a look counts if the same program is there after it.
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
