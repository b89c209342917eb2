// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/set_action.hpp"

#include <fmt/core.h>

#include "libsieve/kernel/redirect_maps.hpp"

namespace sieve::control {

Result<WantedAction> parse_action(const std::string& text) {
    for (const sieve_action action : {SIEVE_ACTION_DROP, SIEVE_ACTION_PASS, SIEVE_ACTION_COUNT})
        if (text == action_name(action)) return WantedAction{action, {}};
    return invalid_request(fmt::format("action `{}`: expected drop, pass or count", text));
}

SetAction natural_action(sieve_action default_action) {
    return {default_action == SIEVE_ACTION_DROP ? SIEVE_ACTION_PASS : SIEVE_ACTION_DROP, 0};
}

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
    return "unknown"; // an action of a newer program
}

std::string describe_action(SetAction action) {
    if (action.action < SIEVE_ACTION_FIRST_REDIRECT) return action_name(action.action);
    const kernel::Target target{action.action, action.target};
    return fmt::format("redirect={}{}", kernel::target_name(target),
                       kernel::target_state(target) == kernel::TargetState::down ? " (down)" : "");
}

} // namespace sieve::control
