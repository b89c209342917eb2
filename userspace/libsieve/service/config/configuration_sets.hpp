// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A table [set.NAME], from TOML to values.
#pragma once

#include <string>

#include "libsieve/service/config/configuration_keys.hpp"
#include "libsieve/service/config/values/configuration.hpp"

namespace sieve::service {

// All but the options of a build.
[[nodiscard]] const ConfigurationKeys<SetConfiguration>& set_keys();
// Those among them that say what becomes of a match.
[[nodiscard]] const ConfigurationKeys<SetConfiguration>& action_keys();
// The options of a build, from their one table (control/spec/build_options.hpp).
[[nodiscard]] const ConfigurationKeys<SetConfiguration>& build_keys();
// Those of them that decide which filter is built of a list.
[[nodiscard]] const ConfigurationKeys<SetConfiguration>& deciding_keys();
[[nodiscard]] const ConfigurationKeys<GuardLimits>& guard_keys(); // of [set.NAME.guards]

// `key` is the table's: "set.NAME".
[[nodiscard]] SetConfiguration read_set(Mistakes& mistakes, const std::string& name, const toml::table& table,
                                        const std::string& key, const KeyContext& context);

} // namespace sieve::service
