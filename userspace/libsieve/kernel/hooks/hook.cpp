// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/hook.hpp"

#include <fcntl.h>

#include <fmt/format.h>

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

std::optional<DispatcherRank> Hook::rank() const {
    for (const DispatchedProgram& member : members)
        if (ours && member.program.id == ours->id) return member.rank;
    return std::nullopt;
}

const TcFilter* Hook::filter() const {
    for (const TcFilter& filter : filters)
        if (ours && filter.program_id == ours->id) return &filter;
    return nullptr;
}

std::span<const TcFilter> Hook::filters_before() const {
    const TcFilter* const own = filter();
    return own == nullptr ? std::span<const TcFilter>() : std::span(filters.data(), own);
}

Status recognise(Hook& hook, const Program& program) {
    Result<std::optional<Instance>> instance = Instance::from_program(program.fd.get());
    if (!instance) {
        if (instance.error().kind != ErrorKind::other_version ||
            (!program.name.starts_with(SIEVE_PROGRAM) && program.name != SIEVE_PROGRAM_INGRESS &&
             program.name != SIEVE_PROGRAM_EGRESS))
            return tl::unexpected(std::move(instance.error()));
        hook.other_version = std::move(instance.error().message);
    } else if (!*instance) {
        return {};
    } else {
        hook.instance = std::move(*instance);
        hook.by_load = hook.instance->control().loader == SIEVE_LOADER_SIEVE;
    }
    hook.ours = Program{.id = program.id,
                        .name = program.name,
                        .fd = UniqueFd(::fcntl(program.fd.get(), F_DUPFD_CLOEXEC, 3))};
    return {};
}

Status refuse_unless_ours(const Hook& hook) {
    const std::string& name = hook.interface.name;
    const std::string where =
        hook.point == HookPoint::xdp ? "" : fmt::format(" at its {} hook", hook_point_name(hook.point));
    if (hook.foreign())
        return failure(ErrorKind::not_attached,
                       fmt::format("{} runs another XDP program, {}, and not xdp-sieve", name,
                                   program_text(*hook.attached)),
                       {.interface = name, .program = hook.attached->name, .program_id = hook.attached->id});
    if (!hook.ours)
        return failure(ErrorKind::not_attached, fmt::format("{} has no xdp-sieve program{}", name, where),
                       {.interface = name, .hooks = {hook_point_name(hook.point)}});
    if (!hook.speaks_our_version())
        return failure(ErrorKind::other_version, fmt::format("{}{}: {}", name, where, hook.other_version),
                       {.interface = name, .hooks = {hook_point_name(hook.point)}});
    return {};
}

std::string program_text(const Program& program) {
    return fmt::format("{} (id {})", program.name.empty() ? "without a name" : program.name, program.id);
}

std::string filter_text(const TcFilter& filter) {
    const std::string& name = filter.name.empty() ? filter.kind : filter.name;
    const std::string id = filter.program_id == 0 ? "" : fmt::format(" (id {})", filter.program_id);
    return fmt::format("{}{}, priority {}", name, id, filter.priority);
}

std::string filters_text(std::span<const TcFilter> filters) {
    std::vector<std::string> texts;
    for (const TcFilter& filter : filters) texts.push_back(filter_text(filter));
    return fmt::format("{}", fmt::join(texts, ", then "));
}

tl::unexpected<Error> foreign_program(const Hook& hook, const std::string& what) {
    return failure(
        ErrorKind::foreign_program, fmt::format("{} runs {}", hook.interface.name, what),
        {.interface = hook.interface.name, .program = hook.attached->name, .program_id = hook.attached->id});
}

} // namespace sieve::kernel
