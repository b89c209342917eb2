// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/set_action.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "libsieve/kernel/redirect_maps.hpp"
#include "libsieve/util/number.hpp"

namespace sieve::control {

Result<WantedAction> parse_action(const std::string& text) {
    constexpr std::string_view limit = "limit=";
    if (text.starts_with(limit)) return parse_limit(text.substr(limit.size()));
    for (const sieve_action action : {SIEVE_ACTION_DROP, SIEVE_ACTION_PASS, SIEVE_ACTION_COUNT})
        if (text == action_name(action)) return WantedAction{action, {}};
    return invalid_request(fmt::format("action `{}`: expected drop, pass, count or limit=PPS[/BURST]", text));
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
        return wrong(fmt::format("a burst of 1 to {} packets at {} packets per second", most, *rate));
    return WantedAction{.action = SIEVE_ACTION_LIMIT,
                        .limit = {static_cast<std::uint32_t>(*rate), static_cast<std::uint32_t>(*burst)}};
}

SetAction natural_action(sieve_action default_action) {
    return {default_action == SIEVE_ACTION_DROP ? SIEVE_ACTION_PASS : SIEVE_ACTION_DROP, 0};
}

bool may_drop(sieve_action action) {
    return action == SIEVE_ACTION_DROP || action == SIEVE_ACTION_LIMIT;
}

const char* action_name(sieve_action action) {
    switch (action) {
    case SIEVE_ACTION_DROP:
        return "drop";
    case SIEVE_ACTION_PASS:
        return "pass";
    case SIEVE_ACTION_COUNT:
        return "count";
    case SIEVE_ACTION_LIMIT:
        return "limit";
    case SIEVE_ACTION_REDIRECT_DEVICE:
    case SIEVE_ACTION_REDIRECT_CPU:
        return "redirect";
    }
    return "unknown"; // an action of a newer program
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
