// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a match with a set does: as it is wanted, and as the kernel has it.
#pragma once

#include <cstdint>
#include <string>

#include <sieve/policy.h>

#include "libsieve/util/result.hpp"

namespace sieve::control {

// As it is wanted. A redirect names its target, an interface or "cpu:3".
struct WantedAction {
    sieve_action action = SIEVE_ACTION_DROP; // of a redirect either of the two: the target decides
    std::string target{};
};

// As the kernel has it.
struct SetAction {
    sieve_action action = SIEVE_ACTION_DROP;
    std::uint32_t target = 0; // of a redirect: the interface's index, the CPU's number
};

// "drop", "pass" or "count"; a redirect is named by its target. Error for any other text.
[[nodiscard]] Result<WantedAction> parse_action(const std::string& text);

// What a set without an action of its own does: the opposite of the default. A match that changes nothing
// would make the set pointless.
[[nodiscard]] SetAction natural_action(sieve_action default_action);

// "drop", "pass", "count" or "redirect".
[[nodiscard]] const char* action_name(sieve_action action);

// The same, and where to: "redirect=eth1", "redirect=cpu:3", "redirect=eth1 (down)".
[[nodiscard]] std::string describe_action(SetAction action);

} // namespace sieve::control
