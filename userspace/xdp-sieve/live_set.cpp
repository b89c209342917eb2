// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/live_set.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "xdp-sieve/format.hpp"
#include "xdp-sieve/set_source.hpp"

namespace sieve::cli {

namespace {

Result<sieve_action> parse_action(const std::string& text) {
    for (const sieve_action action : {SIEVE_ACTION_DROP, SIEVE_ACTION_PASS, SIEVE_ACTION_COUNT})
        if (text == action_name(action)) return action;
    return usage_error(fmt::format("action `{}`: expected drop, pass or count", text));
}

} // namespace

const char* action_name(sieve_action action) {
    switch (action) {
    case SIEVE_ACTION_DROP:
        return "drop";
    case SIEVE_ACTION_PASS:
        return "pass";
    case SIEVE_ACTION_COUNT:
        return "count";
    }
    return "unknown";
}

Result<sieve_action> parse_default(const std::string& text) {
    if (text == "pass") return SIEVE_ACTION_PASS;
    if (text == "drop") return SIEVE_ACTION_DROP;
    return usage_error(fmt::format("--default {}: expected pass or drop", text));
}

sieve_action natural_action(sieve_action default_action) {
    return default_action == SIEVE_ACTION_DROP ? SIEVE_ACTION_PASS : SIEVE_ACTION_DROP;
}

Result<SetArgument> parse_set_argument(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos)
        return usage_error(fmt::format("`{}`: expected NAME=IMAGE or NAME=FEED", text));
    SetArgument argument{.name = text.substr(0, equals), .path = {}, .action = {}};
    if (!kernel::is_set_name(argument.name))
        return usage_error(fmt::format("`{}`: a set's name is 1 to {} of A-Z a-z 0-9 . _ -", argument.name,
                                       SIEVE_NAME_BYTES - 1));
    std::string rest = text.substr(equals + 1);
    const auto cut = [&rest] {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        std::string piece = rest.substr(0, comma);
        rest.erase(0, std::min(comma + 1, rest.size()));
        return piece;
    };
    argument.path = cut();
    if (argument.path.empty()) return usage_error(fmt::format("`{}`: a set without an image or feed", text));
    while (!rest.empty()) {
        const std::string option = cut();
        constexpr std::string_view action = "action=";
        if (!option.starts_with(action))
            return usage_error(fmt::format(
                "`{}`: unknown option `{}` of a set, expected action=drop|pass|count", text, option));
        SIEVE_ASSIGN(argument.action, parse_action(option.substr(action.size())));
    }
    return argument;
}

Result<std::vector<ReadySet>> prepare_sets(const std::vector<SetArgument>& arguments,
                                           const Context& context) {
    std::vector<ReadySet> sets;
    // Before the sets, whose building may take minutes: without rights it ends here.
    SIEVE_ASSIGN(kernel::Preflight preflight, kernel::Preflight::start());
    for (const SetArgument& argument : arguments) {
        SIEVE_ASSIGN(Image image, open_set(argument.path, context));
        SIEVE_ASSIGN(kernel::FilterMap map, kernel::FilterMap::create(image, argument.name));
        SIEVE_ASSIGN(const kernel::PreflightReport report, preflight.check(image, map, argument.name));
        if (report.uncarriable > 0)
            remark(context,
                   fmt::format("set {}: {} of {} sampled keys are flows that no packet can be of (ports "
                               "with a protocol that has none)",
                               argument.name, report.uncarriable, report.uncarriable + report.members));
        sets.push_back({argument.name, std::move(image), std::move(map), report});
    }
    return sets;
}

nlohmann::json to_json(const ReadySet& set) {
    const kernel::PreflightReport& report = set.preflight;
    return {{"name", set.name},
            {"keys", set.image.file().keys},
            {"bytes", set.image.bytes()},
            {"map_id", set.map.id()},
            {"preflight",
             {{"members", report.members},
              {"uncarriable", report.uncarriable},
              {"strangers", report.strangers},
              {"matched", report.matched},
              {"expected", report.expected_rate * static_cast<double>(report.strangers)},
              {"milliseconds", report.milliseconds}}}};
}

std::string describe(const ReadySet& set) {
    const kernel::PreflightReport& report = set.preflight;
    const auto count = [](std::uint64_t number, const char* noun) {
        return fmt::format("{} {}{}", format_count(number), noun, number == 1 ? "" : "s");
    };
    return fmt::format("{}: {}, {}; tested in {:.0f} ms: {} matched, {} of {} strangers did "
                       "({:.3g} expected)",
                       set.name, count(set.image.file().keys, "key"), format_bytes(set.image.bytes()),
                       report.milliseconds, count(report.members, "member"), format_count(report.matched),
                       format_count(report.strangers),
                       report.expected_rate * static_cast<double>(report.strangers));
}

} // namespace sieve::cli
