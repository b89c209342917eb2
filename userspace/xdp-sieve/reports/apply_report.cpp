// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/reports/apply_report.hpp"

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "front-end/console/format.hpp"
#include "front-end/hook_argument.hpp"
#include "xdp-sieve/reports/set_report.hpp"

namespace sieve::cli {

namespace {

using service::HookPlan;
using service::HookStep;
using service::SetPlan;

const char* step_word(HookStep step, bool done) {
    switch (step) {
    case HookStep::nothing:
        return "nothing to do";
    case HookStep::attach:
        return done ? "attached" : "attach";
    case HookStep::change:
        return done ? "changed" : "change";
    case HookStep::unload:
        return done ? "unloaded" : "unload";
    }
    return "unknown";
}

const char* step_name(HookStep step) {
    return step == HookStep::nothing ? "nothing" : step_word(step, false);
}

const char* verified_text(bool verified) {
    return verified ? ", verified" : "";
}

void append_set(std::string& text, const SetPlan& set) {
    if (set.comes)
        text += fmt::format("  + set {}: {}{}\n", set.name, describe_action(*set.action),
                            verified_text(set.verified));
    if (set.goes)
        text += fmt::format("  - set {}: {}{}\n", set.name, describe_action(*set.action_before),
                            verified_text(set.verified_before));
    if (set.new_filter) text += fmt::format("  ~ set {}: new filter\n", set.name);
    if (set.other_action())
        text += fmt::format("  ~ set {}: {} -> {}\n", set.name, describe_action(*set.action_before),
                            describe_action(*set.action));
    if (set.other_verification())
        text +=
            fmt::format("  ~ set {}: {}\n", set.name, set.verified ? "verified" : "not verified any more");
}

nlohmann::json action_to_json(const control::SetAction& action) {
    nlohmann::json out = nlohmann::json::object();
    add_action(out, action);
    return out;
}

nlohmann::json json_of(const SetPlan& set) {
    nlohmann::json out = {{"name", set.name},
                          {"comes", set.comes},
                          {"goes", set.goes},
                          {"new_filter", set.new_filter || set.comes},
                          {"verified", set.verified}};
    if (set.action) add_action(out, *set.action);
    if (set.other_action()) out["before"] = action_to_json(*set.action_before);
    if (set.other_verification()) out["verified_before"] = set.verified_before;
    return out;
}

} // namespace

std::string describe(const HookPlan& plan, bool done) {
    const std::string title = hook_title(plan.interface, plan.point);
    if (plan.step == HookStep::nothing && plan.waiting.empty())
        return plan.paused
                   ? fmt::format("{}: paused; `xdp-sieve resume {}` ends that\n", title, plan.interface)
                   : std::string();
    std::string text = fmt::format("{}: {}{}\n", title, step_word(plan.step, done),
                                   plan.paused ? ", since it is paused" : "");
    for (const SetPlan& set : plan.sets) append_set(text, set);
    if (!plan.order_before.empty())
        text += fmt::format("  ~ order: {} -> {}\n", fmt::join(plan.order_before, ", "),
                            fmt::join(plan.names(), ", "));
    if (plan.default_before)
        text += fmt::format("  ~ default: {} -> {}\n", action_name(*plan.default_before),
                            action_name(plan.default_action));
    if (plan.unreadable_before)
        text += fmt::format("  ~ unreadable: {} -> {}\n", action_name(*plan.unreadable_before),
                            action_name(plan.entry->unreadable));
    if (plan.replies_before)
        text += fmt::format("  ~ replies: {} -> {}\n", action_name(*plan.replies_before),
                            action_name(plan.replies));
    if (plan.notes_gone) text += "  ~ replies: the program that notes flows is missing, and comes back\n";
    for (const service::WaitingSet& set : plan.waiting) text += fmt::format("  . {}\n", waiting_text(set));
    if (plan.default_waits())
        text += fmt::format("  . default {} until then\n", action_name(plan.default_action));
    return text;
}

nlohmann::json to_json(const HookPlan& plan) {
    nlohmann::json out = {{"interface", plan.interface},
                          {"hook", kernel::hook_point_name(plan.point)},
                          {"step", step_name(plan.step)},
                          {"paused", plan.paused},
                          {"sets", nlohmann::json::array()}};
    for (const SetPlan& set : plan.sets) out["sets"].push_back(json_of(set));
    for (const service::WaitingSet& set : plan.waiting) {
        out["waiting"].push_back({{"name", set.name}});
        if (!set.behind.empty()) out["waiting"].back()["behind"] = set.behind;
    }
    if (!plan.order_before.empty()) out["order_before"] = plan.order_before;
    if (plan.default_before) out["default_before"] = action_name(*plan.default_before);
    if (plan.unreadable_before) out["unreadable_before"] = action_name(*plan.unreadable_before);
    if (plan.replies_before) out["replies_before"] = action_name(*plan.replies_before);
    if (plan.notes_gone) out["notes_gone"] = true;
    if (plan.entry != nullptr) {
        out["default"] = action_name(plan.default_action);
        out["unreadable"] = action_name(plan.entry->unreadable);
        out["replies"] = action_name(plan.replies);
    }
    return out;
}

std::string describe(const std::string& set, std::uint64_t entries, const service::ListChange& change) {
    std::string text =
        fmt::format("set {}: {}, {} added, {} gone\n", set, format_counted(entries, "entry", "entries"),
                    format_count(change.added), format_count(change.gone));
    const auto list = [&](char sign, const std::vector<std::string>& first, std::uint64_t all) {
        for (const std::string& entry : first) text += fmt::format("    {} {}\n", sign, entry);
        if (all > first.size())
            text += fmt::format("    {} and {} more\n", sign, format_count(all - first.size()));
    };
    list('+', change.first_added, change.added);
    list('-', change.first_gone, change.gone);
    return text;
}

nlohmann::json to_json(const service::ListChange& change) {
    return {{"added", change.added},
            {"gone", change.gone},
            {"first_added", change.first_added},
            {"first_gone", change.first_gone}};
}

nlohmann::json to_json(const service::SetTimes& times) {
    return {{"fetching", times.fetching.count()},
            {"reading", times.reading.count()},
            {"building", times.building.count()},
            {"testing", times.testing.count()},
            {"swapping", times.swapping.count()}};
}

nlohmann::json to_json(const service::SetRecord& record) {
    return {{"identity", record.identity}, {"entries", record.entries},
            {"keys", record.keys},         {"skipped_lines", record.skipped},
            {"bytes", record.bytes},       {"expected_fpr", record.expected_fpr},
            {"built_at", record.built_at}};
}

} // namespace sieve::cli
