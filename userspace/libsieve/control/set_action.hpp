// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a match with a set does: as it is wanted, and as the kernel holds it.
#pragma once

#include <cstdint>
#include <string>

#include <sieve/policy.h>

#include "libsieve/util/result.hpp"

namespace sieve::control {

// As it is wanted. A redirecting action names its target: an interface, or "cpu:3".
struct WantedAction {
    sieve_action action = SIEVE_ACTION_DROP; // if redirecting, either redirect: the target decides
    std::string target{};
};

// As the kernel holds it.
struct SetAction {
    sieve_action action = SIEVE_ACTION_DROP;
    std::uint32_t target = 0; // of a redirecting action: the interface's index or the CPU's number
};

// Parses "drop", "pass" or "count". A redirecting action is given by its target instead. Error for any other
// text.
[[nodiscard]] Result<WantedAction> parse_action(const std::string& text);

// The action of a set that names none: the opposite of the default. With the default itself, a match would
// change nothing, and the set would be pointless.
[[nodiscard]] SetAction natural_action(sieve_action default_action);

// "drop", "pass", "count" or "redirect".
[[nodiscard]] const char* action_name(sieve_action action);

// The same with the target: "redirect=eth1", "redirect=cpu:3", "redirect=eth1 (down)".
[[nodiscard]] std::string describe_action(SetAction action);

} // namespace sieve::control
