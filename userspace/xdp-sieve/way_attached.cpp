// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/way_attached.hpp"

#include <fmt/core.h>

namespace sieve::cli {

namespace {

std::string place_text(const std::optional<kernel::DispatcherPlace>& place) {
    return place ? fmt::format("priority {}, chain {}", place->priority, kernel::chain_text(place->chain))
                 : std::string("at a place that this dispatcher does not tell");
}

void add_place(nlohmann::json& out, const std::optional<kernel::DispatcherPlace>& place) {
    out["priority"] = nullptr;
    out["chain"] = nullptr;
    if (!place) return;
    out["priority"] = place->priority;
    out["chain"] = kernel::chain_text(place->chain);
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
        return fmt::format("behind libxdp's dispatcher, {}", place_text(hook.place()));
    return hook.by_load || !hook.speaks_our_version() ? "alone" : "alone, by ip link or another tool";
}

std::string neighbours(const kernel::Hook& hook) {
    std::string text;
    if (hook.filters.size() > 1)
        for (const kernel::TcFilter& filter : hook.filters)
            text += fmt::format("  asked {:<10} {} (id {}), priority {}\n",
                                &filter == &hook.filters.front() ? "first:" : "then:", filter.name,
                                filter.program_id, filter.priority);
    if (!hook.behind_dispatcher()) return text;
    for (const kernel::DispatcherMember& member : hook.members)
        text += fmt::format("  asked {:<10} {} (id {}), {}\n",
                            &member == &hook.members.front() ? "first:" : "then:", member.program.name,
                            member.program.id, place_text(member.place));
    return text;
}

void add_way_attached(nlohmann::json& out, const kernel::Hook& hook) {
    out["dispatcher"] = hook.behind_dispatcher();
    out["attached_by"] =
        hook.speaks_our_version() ? nlohmann::json(hook.by_load ? "load" : "other") : nullptr;
    if (const kernel::TcFilter* ours = hook.filter(); ours != nullptr) {
        out["priority"] = ours->priority;
        out["programs"] = nlohmann::json::array();
        for (const kernel::TcFilter& filter : hook.filters)
            out["programs"].push_back(
                {{"id", filter.program_id}, {"name", filter.name}, {"priority", filter.priority}});
    }
    if (!hook.behind_dispatcher()) return;
    add_place(out, hook.place());
    out["programs"] = nlohmann::json::array();
    for (const kernel::DispatcherMember& member : hook.members) {
        nlohmann::json program = {{"id", member.program.id}, {"name", member.program.name}};
        add_place(program, member.place);
        out["programs"].push_back(std::move(program));
    }
}

} // namespace sieve::cli
