// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a person's change of a hook has to know of the service: who manages the hook, and what becomes of the
// change.
#pragma once

#include <optional>
#include <string>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/state/pauses.hpp"
#include "libsieve/util/results/result.hpp"
#include "xdp-sieve/arguments/context.hpp"

namespace sieve::cli {

enum class Change {
    table,  // the next cycle undoes it
    keys,   // of one set: its next list undoes it
    unload, // the next cycle undoes it, and `pause` is what lasts
};

// Refuses (busy) the change of a hook that a running xdp-sieved manages or keeps paused. With `force`, only
// remarks what will become of the change. Without a point, the name covers every hook of the interface.
[[nodiscard]] Status may_change(const control::HookName& hook, Change change, bool force,
                                const Context& context);

inline constexpr char help_of_managed[] = "also on a hook that the service manages, until it undoes that";

// The state directory whose pauses and refusals count: that of the running xdp-sieved, or else that of the
// configuration; without one, the standard one.
[[nodiscard]] Result<std::string> state_at(const std::string& configuration, const Context& context);

// What can be understood of the configuration: that of the running xdp-sieved, or else of this file. Nothing
// if it cannot be read.
[[nodiscard]] std::optional<service::Configuration> configuration_at(const std::string& path);

// Sees to it that a state directory is there. One that a daemon works with is.
[[nodiscard]] Status make_state(const std::string& path, const Context& context);

// "eth0, eth1" or "every interface"
[[nodiscard]] std::string paused_text(const service::Pauses& pauses);

} // namespace sieve::cli
