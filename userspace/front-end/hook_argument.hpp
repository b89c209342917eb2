// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// `--hook`, and how messages name a hook.
#pragma once

#include <string>

#include "front-end/console/arguments.hpp"
#include "libsieve/control/access/in_force.hpp"
#include "libsieve/kernel/programs/hook_point.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::cli {

// Adds IFACE to a command. An alternative name of an interface becomes the one that the kernel knows it by.
Argument add_interface(Arguments command, std::string& into, const std::string& description);

// Adds the option to a command that names an interface. `otherwise` says what applies without the option.
void add_hook(Arguments command, std::string& into, const std::string& otherwise);

// The help text for `--hook` of most commands.
inline constexpr char hook_in_use[] = "the one in use if not given";

// The hook that the two arguments name. An empty text names nothing.
[[nodiscard]] Result<control::HookName> parse_hook(const std::string& interface, const std::string& hook);

// "eth0" at XDP, "eth0 egress" at tc.
[[nodiscard]] std::string hook_title(const std::string& interface, kernel::HookPoint point);

} // namespace sieve::cli
