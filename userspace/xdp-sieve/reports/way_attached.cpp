// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/reports/way_attached.hpp"

#include <fmt/core.h>

namespace sieve::cli {

namespace {

std::string rank_text(const std::optional<kernel::DispatcherRank>& rank) {
    return rank ? fmt::format("priority {}, chain {}", rank->priority, kernel::chain_text(rank->chain))
                : std::string("at a rank that this dispatcher does not tell");
}

void add_rank(nlohmann::json& out, const std::optional<kernel::DispatcherRank>& rank) {
    out["priority"] = nullptr;
    out["chain"] = nullptr;
    if (!rank) return;
    out["priority"] = rank->priority;
    out["chain"] = kernel::chain_text(rank->chain);
}

} // namespace

std::string mode_text(const kernel::Hook& hook) {
    return hook.point == kernel::HookPoint::xdp ? fmt::format("{} mode, ", kernel::mode_name(hook.mode))
                                                : std::string();
}

nlohmann::json mode_json(const kernel::Hook& hook) {
    return hook.point == kernel::HookPoint::xdp ? nlohmann::json(kernel::mode_name(hook.mode)) : nullptr;
}

std::string way_attached(const kernel::Hook& hook) {
    if (const kernel::TcFilter* filter = hook.filter(); filter != nullptr)
        return fmt::format("priority {}{}", filter->priority,
                           hook.by_load || !hook.speaks_our_version() ? "" : ", by tc or another tool");
    if (hook.behind_dispatcher())
        return fmt::format("behind libxdp's dispatcher, {}", rank_text(hook.rank()));
    return hook.by_load || !hook.speaks_our_version() ? "alone" : "alone, by ip link or another tool";
}

nlohmann::json filters_json(std::span<const kernel::TcFilter> filters) {
    nlohmann::json out = nlohmann::json::array();
    for (const kernel::TcFilter& filter : filters) {
        nlohmann::json& one = out.emplace_back();
        one["kind"] = filter.kind;
        one["id"] = filter.program_id != 0 ? nlohmann::json(filter.program_id) : nullptr;
        one["name"] = !filter.name.empty() ? nlohmann::json(filter.name) : nullptr;
        one["priority"] = filter.priority;
    }
    return out;
}

std::string neighbours(const kernel::Hook& hook) {
    std::string text;
    if (hook.filters.size() > 1)
        for (const kernel::TcFilter& filter : hook.filters)
            text += fmt::format("  asked {:<10} {}\n", &filter == &hook.filters.front() ? "first:" : "then:",
                                kernel::filter_text(filter));
    if (!hook.behind_dispatcher()) return text;
    for (const kernel::DispatchedProgram& member : hook.members)
        text += fmt::format("  asked {:<10} {} (id {}), {}\n",
                            &member == &hook.members.front() ? "first:" : "then:", member.program.name,
                            member.program.id, rank_text(member.rank));
    return text;
}

void add_way_attached(nlohmann::json& out, const kernel::Hook& hook) {
    out["dispatcher"] = hook.behind_dispatcher();
    out["attached_by"] =
        hook.speaks_our_version() ? nlohmann::json(hook.by_load ? "load" : "other") : nullptr;
    if (const kernel::TcFilter* ours = hook.filter(); ours != nullptr) {
        out["priority"] = ours->priority;
        out["programs"] = filters_json(hook.filters);
    }
    if (!hook.behind_dispatcher()) return;
    add_rank(out, hook.rank());
    out["programs"] = nlohmann::json::array();
    for (const kernel::DispatchedProgram& member : hook.members) {
        nlohmann::json program = {{"id", member.program.id}, {"name", member.program.name}};
        add_rank(program, member.rank);
        out["programs"].push_back(std::move(program));
    }
}

} // namespace sieve::cli
