// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/reports/set_report.hpp"

#include <fmt/format.h>

#include "front-end/console/format.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/maps/redirect_maps.hpp"

namespace sieve::cli {

void add_action(nlohmann::json& out, SetAction action) {
    out["action"] = action_name(action.action);
    if (action.action == SIEVE_ACTION_LIMIT)
        out["limit"] = {{"packets_per_second", action.target}, {"burst", action.burst}};
    if (control::may_drop(action.action)) out["replies"] = action.keeps_replies_out ? "drop" : "pass";
    for (const control::ConditionPart& part : control::condition_parts())
        if ((action.condition.fields & part.field) != 0)
            out[part.name] = condition_values(action.condition, part);
    if (action.action < SIEVE_ACTION_FIRST_REDIRECT) return;
    const kernel::Target target{action.action, action.target};
    out["target"] = kernel::target_name(target);
    out["target_state"] = kernel::target_state_name(kernel::target_state(target));
}

nlohmann::json to_json(const control::ReadySet& set) {
    const kernel::PreflightReport& report = set.preflight;
    nlohmann::json out = {{"name", set.name},
                          {"keys", set.image.file().keys},
                          {"bytes", set.image.bytes()},
                          {"map_id", set.maps.filter_id},
                          {"preflight",
                           {{"members", report.members},
                            {"uncarriable", report.uncarriable},
                            {"non_members", report.non_members},
                            {"matched", report.matched},
                            {"avoided", report.avoided},
                            {"exceptions", report.exceptions},
                            {"expected", report.expected_rate * static_cast<double>(report.non_members)},
                            {"milliseconds", report.milliseconds}}}};
    out["verify"] = set.maps.verified();
    if (set.maps.verified()) out["verify_bytes"] = set.maps.exact_bytes;
    return out;
}

std::string describe(const control::ReadySet& set) {
    const kernel::PreflightReport& report = set.preflight;
    const std::string exact =
        set.maps.verified() ? fmt::format(" and {} to verify with", format_bytes(set.maps.exact_bytes)) : "";
    const std::string rejected =
        set.maps.verified()
            ? fmt::format(", verification rejected {}", format_counted(report.avoided, "false positive"))
            : "";
    const std::string exceptions =
        report.exceptions > 0 ? fmt::format(", {} did not", format_counted(report.exceptions, "exception"))
                              : "";
    // An exact kind matches members only, so the random keys that matched are such.
    const ExactKind* kind = kind_of(set.image.lookup()).exact();
    const bool members = kind != nullptr;
    return fmt::format(
        "{}: {}, {}{}; tested in {:.0f} ms: {} matched, {} of {} {}{} ({:.3g} expected){}", set.name,
        format_counted(set.image.file().keys, members && !kind->is_of_keys() ? "range" : "key"),
        format_bytes(set.image.bytes()), exact, report.milliseconds, format_counted(report.members, "member"),
        format_count(report.matched), format_counted(report.non_members, "random key"),
        members ? "are members and did" : "did", rejected,
        report.expected_rate * static_cast<double>(report.non_members), exceptions);
}

void remark_on_test(const control::ReadySet& set, const Context& context) {
    const kernel::PreflightReport& report = set.preflight;
    if (report.uncarriable > 0)
        remark(context, fmt::format("set {}: {} of {} are keys that no packet can carry ({})", set.name,
                                    report.uncarriable,
                                    format_counted(report.uncarriable + report.members, "sampled key"),
                                    fmt::join(report.obstacles, "; ")));
}

} // namespace sieve::cli
