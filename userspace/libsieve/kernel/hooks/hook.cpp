// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/hook.hpp"

#include <fcntl.h>

namespace sieve::kernel {

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

std::optional<DispatcherPlace> Hook::place() const {
    for (const DispatcherMember& member : members)
        if (ours && member.program.id == ours->id) return member.place;
    return std::nullopt;
}

const TcFilter* Hook::filter() const {
    for (const TcFilter& filter : filters)
        if (ours && filter.program_id == ours->id) return &filter;
    return nullptr;
}

Status recognise(Hook& hook, const Program& program) {
    Result<std::optional<Instance>> instance = Instance::from_program(program.fd.get());
    if (!instance) {
        if (!program.name.starts_with(SIEVE_PROGRAM) && program.name != SIEVE_PROGRAM_INGRESS &&
            program.name != SIEVE_PROGRAM_EGRESS)
            return tl::unexpected(std::move(instance.error()));
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

} // namespace sieve::kernel
