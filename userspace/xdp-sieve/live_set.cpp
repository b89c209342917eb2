// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/live_set.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "libsieve/kernel/capabilities.hpp"
#include "libsieve/kernel/redirect_maps.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/set_source.hpp"

namespace sieve::cli {

namespace {

Result<SetAction> parse_action(const std::string& text) {
    for (const sieve_action action : {SIEVE_ACTION_DROP, SIEVE_ACTION_PASS, SIEVE_ACTION_COUNT})
        if (text == action_name(action)) return SetAction{action, 0};
    return usage_error(fmt::format("action `{}`: expected drop, pass or count", text));
}

Result<SetAction> parse_redirect(const std::string& text) {
    SIEVE_ASSIGN(const kernel::Target target, kernel::find_target(text));
    return SetAction{target.action, target.number};
}

constexpr std::string_view action_option = "action=";
constexpr std::string_view redirect_option = "redirect=";
constexpr std::string_view verify_option = "verify";

// One of the options behind a set's file.
Status parse_option(const std::string& text, const std::string& option, SetArgument& argument) {
    if (option == verify_option) {
        argument.verify = "";
        return {};
    }
    if (option.starts_with("verify=")) {
        argument.verify = option.substr(verify_option.size() + 1);
        return argument.verify->empty()
                   ? Status(usage_error(fmt::format("`{}`: verify= without a feed", text)))
                   : Status();
    }
    const bool action = option.starts_with(action_option);
    if (!action && !option.starts_with(redirect_option))
        return usage_error(fmt::format("`{}`: unknown option `{}` of a set, expected action=drop|pass|count, "
                                       "redirect=INTERFACE|cpu:NUMBER or verify",
                                       text, option));
    if (argument.action) return usage_error(fmt::format("`{}`: a set has one action", text));
    SIEVE_ASSIGN(argument.action, action ? parse_action(option.substr(action_option.size()))
                                         : parse_redirect(option.substr(redirect_option.size())));
    return {};
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
    case SIEVE_ACTION_REDIRECT_DEVICE:
    case SIEVE_ACTION_REDIRECT_CPU:
        return "redirect";
    }
    return "unknown";
}

std::string describe_action(SetAction action) {
    return action.action < SIEVE_ACTION_FIRST_REDIRECT
               ? std::string(action_name(action.action))
               : fmt::format("redirect={}", kernel::target_name({action.action, action.target}));
}

void add_action(nlohmann::json& out, SetAction action) {
    out["action"] = action_name(action.action);
    if (action.action >= SIEVE_ACTION_FIRST_REDIRECT)
        out["target"] = kernel::target_name({action.action, action.target});
}

Result<sieve_action> parse_default(const std::string& text) {
    if (text == "pass") return SIEVE_ACTION_PASS;
    if (text == "drop") return SIEVE_ACTION_DROP;
    return usage_error(fmt::format("--default {}: expected pass or drop", text));
}

SetAction natural_action(sieve_action default_action) {
    return {default_action == SIEVE_ACTION_DROP ? SIEVE_ACTION_PASS : SIEVE_ACTION_DROP, 0};
}

Result<SetArgument> parse_set_argument(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos)
        return usage_error(fmt::format("`{}`: expected NAME=IMAGE or NAME=FEED", text));
    SetArgument argument{.name = text.substr(0, equals), .path = {}, .action = {}, .verify = {}};
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
        SIEVE_TRY(parse_option(text, cut(), argument));
    }
    return argument;
}

Result<ReadySets> prepare_sets(const std::vector<SetArgument>& arguments, bool frags,
                               const Context& context) {
    // Before the sets, whose building may take minutes: without rights or an input it ends here.
    SIEVE_TRY(kernel::may_load_programs());
    std::vector<SetSource> sources;
    for (const SetArgument& argument : arguments) {
        SIEVE_ASSIGN(SetSource source, find_source(argument.path, argument.verify));
        sources.push_back(std::move(source));
    }
    SIEVE_TRY(check_sources(sources));
    std::vector<ReadySet> sets;
    std::vector<kernel::PreflightQuestions> questions;
    const auto make_sets = [&]() -> Result<kernel::Scratch::Sets> {
        kernel::Scratch::Sets made;
        for (std::size_t i = 0; i < arguments.size(); i++) {
            const SetArgument& argument = arguments[i];
            SIEVE_ASSIGN(OpenedSet opened, open_set(std::move(sources[i]), context));
            SIEVE_ASSIGN(kernel::FilterMap map, kernel::FilterMap::create(opened.image, argument.name));
            std::optional<kernel::ExactMap> exact;
            if (opened.exact) {
                SIEVE_ASSIGN(exact, kernel::ExactMap::create(*opened.exact, argument.name));
            }
            made.filters.push_back(map.fd());
            made.exact.push_back(exact ? exact->fd() : -1);
            questions.emplace_back(opened.image);
            sets.push_back({argument.name, std::move(opened.image), std::move(map), std::move(exact), {}});
        }
        return made;
    };
    SIEVE_ASSIGN(kernel::Scratch scratch, kernel::Scratch::load_with(make_sets, frags));
    for (std::size_t slot = 0; slot < sets.size(); slot++) {
        ReadySet& set = sets[slot];
        SIEVE_ASSIGN(set.preflight,
                     kernel::preflight(scratch, static_cast<std::uint32_t>(slot), set.image, questions[slot],
                                       set.name, set.exact ? &*set.exact : nullptr));
        const kernel::PreflightReport& report = set.preflight;
        if (report.uncarriable > 0)
            remark(context,
                   fmt::format("set {}: {} of {} sampled keys are flows that no packet can be of (ports "
                               "with a protocol that has none)",
                               set.name, report.uncarriable, report.uncarriable + report.members));
    }
    return ReadySets{std::move(sets), std::move(scratch)};
}

nlohmann::json to_json(const ReadySet& set) {
    const kernel::PreflightReport& report = set.preflight;
    nlohmann::json out = {{"name", set.name},
                          {"keys", set.image.file().keys},
                          {"bytes", set.image.bytes()},
                          {"map_id", set.map.id()},
                          {"preflight",
                           {{"members", report.members},
                            {"uncarriable", report.uncarriable},
                            {"strangers", report.strangers},
                            {"matched", report.matched},
                            {"avoided", report.avoided},
                            {"expected", report.expected_rate * static_cast<double>(report.strangers)},
                            {"milliseconds", report.milliseconds}}}};
    out["verify"] = set.exact.has_value();
    if (set.exact) out["verify_bytes"] = set.exact->bytes();
    return out;
}

std::string describe(const ReadySet& set) {
    const kernel::PreflightReport& report = set.preflight;
    const auto count = [](std::uint64_t number, const char* noun) {
        return fmt::format("{} {}{}", format_count(number), noun, number == 1 ? "" : "s");
    };
    const std::string verified =
        set.exact ? fmt::format(" and {} to verify with", format_bytes(set.exact->bytes())) : "";
    const std::string avoided =
        set.exact ? fmt::format(", {} more but for verification", format_count(report.avoided)) : "";
    return fmt::format("{}: {}, {}{}; tested in {:.0f} ms: {} matched, {} of {} strangers did{} "
                       "({:.3g} expected)",
                       set.name, count(set.image.file().keys, "key"), format_bytes(set.image.bytes()),
                       verified, report.milliseconds, count(report.members, "member"),
                       format_count(report.matched), format_count(report.strangers), avoided,
                       report.expected_rate * static_cast<double>(report.strangers));
}

} // namespace sieve::cli
