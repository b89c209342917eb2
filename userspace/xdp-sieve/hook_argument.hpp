// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// IFACE and --hook: which program of ours a command means.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "libsieve/control/in_force.hpp"
#include "xdp-sieve/arguments.hpp"

namespace sieve::cli {

struct HookArgument {
    std::string interface;
    std::optional<std::string> point;
};

// Adds the required argument IFACE and the option --hook.
void add_hook(Arguments verb, HookArgument& argument);

// Adds --hook alone.
void add_hook_point(Arguments verb, std::optional<std::string>& point);

// The hook point that was named; nothing if none was.
[[nodiscard]] Result<std::optional<kernel::HookPoint>> parse_hook(const std::optional<std::string>& text);

// The hook that is meant: the one that was named, or the only one of the interface where our program runs; of
// several, the one with that set.
[[nodiscard]] Result<control::HookName> find_hook(control::Kernel& kernel, const HookArgument& argument,
                                                  const std::string& set = {});

// "eth0", or "eth0 egress" for a hook of tc.
[[nodiscard]] std::string hook_text(const control::HookName& hook);

// Adds the members "interface" and "hook".
void add_hook_name(nlohmann::json& out, const control::HookName& hook);

} // namespace sieve::cli
