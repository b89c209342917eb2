// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/set_action.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "libsieve/kernel/maps/redirect_maps.hpp"
#include "libsieve/util/text/counted.hpp"
#include "libsieve/util/text/number.hpp"

namespace sieve::control {

namespace {

constexpr ActionFacts actions[] = {
    {.number = SIEVE_ACTION_DROP,
     .name = "drop",
     .by_name = true,
     .decides = true,
     .may_drop = true,
     .takes = true,
     .lets_in = false},
    {.number = SIEVE_ACTION_PASS,
     .name = "pass",
     .by_name = true,
     .decides = true,
     .may_drop = false,
     .takes = false,
     .lets_in = true},
    {.number = SIEVE_ACTION_COUNT,
     .name = "count",
     .by_name = true,
     .decides = false,
     .may_drop = false,
     .takes = false,
     .lets_in = false},
    {.number = SIEVE_ACTION_LIMIT,
     .name = "limit",
     .by_name = false,
     .decides = true,
     .may_drop = true,
     .takes = true,
     .lets_in = false},
    {.number = SIEVE_ACTION_REDIRECT_DEVICE,
     .name = "redirect",
     .by_name = false,
     .decides = true,
     .may_drop = false,
     .takes = true,
     .lets_in = true},
    {.number = SIEVE_ACTION_REDIRECT_CPU,
     .name = "redirect",
     .by_name = false,
     .decides = true,
     .may_drop = false,
     .takes = true,
     .lets_in = true},
};

constexpr ActionFacts unknown = {.number = {},
                                 .name = "unknown",
                                 .by_name = false,
                                 .decides = true,
                                 .may_drop = false,
                                 .takes = true,
                                 .lets_in = true};

} // namespace

std::span<const ActionFacts> set_actions() {
    return actions;
}

const ActionFacts& facts_of(sieve_action action) {
    for (const ActionFacts& facts : actions)
        if (facts.number == action) return facts;
    return unknown;
}

std::string action_names(std::string_view separator) {
    std::string names;
    for (const ActionFacts& facts : actions)
        if (facts.by_name) names.append(names.empty() ? "" : separator).append(facts.name);
    return names;
}

bool is_action_name(std::string_view text) {
    return std::ranges::any_of(actions,
                               [&](const ActionFacts& facts) { return facts.by_name && text == facts.name; });
}

Result<WantedAction> parse_action(const std::string& text) {
    constexpr std::string_view limit = "limit=";
    if (text.starts_with(limit)) return parse_limit(text.substr(limit.size()));
    for (const ActionFacts& facts : actions)
        if (facts.by_name && text == facts.name) return WantedAction{facts.number, {}};
    return invalid_request(
        fmt::format("action `{}`: expected {} or limit=PPS[/BURST]", text, action_names(", ")));
}

Result<WantedAction> parse_limit(const std::string& text) {
    const std::size_t slash = text.find('/');
    const std::optional<std::uint64_t> rate = parse_whole(text.substr(0, slash));
    const std::optional<std::uint64_t> burst =
        slash == std::string::npos ? rate : parse_whole(text.substr(slash + 1));
    const auto wrong = [&](const std::string& expected) {
        return invalid_request(fmt::format("limit={}: expected {}", text, expected));
    };
    if (!rate || !burst) return wrong("PPS or PPS/BURST, whole numbers of packets per second and at once");
    if (*rate < 1 || *rate > SIEVE_LIMIT_MOST_RATE)
        return wrong(fmt::format("1 to {} packets per second", SIEVE_LIMIT_MOST_RATE));
    const std::uint64_t most =
        std::min<std::uint64_t>(*rate * SIEVE_LIMIT_MOST_SECONDS, std::numeric_limits<std::uint32_t>::max());
    if (*burst < 1 || *burst > most)
        return wrong(
            fmt::format("a burst of 1 to {} packets at {} per second", most, counted(*rate, "packet")));
    return WantedAction{.action = SIEVE_ACTION_LIMIT,
                        .limit = {static_cast<std::uint32_t>(*rate), static_cast<std::uint32_t>(*burst)}};
}

SetAction natural_action(sieve_action default_action) {
    return {default_action == SIEVE_ACTION_DROP ? SIEVE_ACTION_PASS : SIEVE_ACTION_DROP, 0};
}

std::string describe_action(SetAction action) {
    std::string options = describe_condition(action.condition);
    if (!options.empty()) options.insert(0, 1, ',');
    if (action.keeps_replies_out) options += ",replies=drop";
    if (action.action == SIEVE_ACTION_LIMIT)
        return fmt::format("limit={}/{}{}", action.target, action.burst, options);
    if (action.action < SIEVE_ACTION_FIRST_REDIRECT)
        return fmt::format("{}{}", action_name(action.action), options);
    const kernel::Target target{action.action, action.target};
    return fmt::format("redirect={}{}{}", kernel::target_name(target), options,
                       kernel::target_state(target) == kernel::TargetState::down ? " (down)" : "");
}

} // namespace sieve::control
