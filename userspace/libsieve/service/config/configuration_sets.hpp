// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A table [set.NAME], from TOML to values.
#pragma once

#include <string>

#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/service/config/configuration.hpp"
#include "libsieve/service/config/configuration_keys.hpp"

namespace sieve::service {

// All but the options of a build, which control/spec/build_options.hpp lists.
[[nodiscard]] const ConfigurationKeys<SetConfiguration>& set_keys();
[[nodiscard]] const ConfigurationKeys<GuardLimits>& guard_keys(); // of [set.NAME.guards]

// Whether the option is also a key of [set.NAME].
[[nodiscard]] bool is_configured(const control::BuildOption& option);

// `key` is the table's: "set.NAME".
[[nodiscard]] SetConfiguration read_set(Mistakes& mistakes, const std::string& name, const toml::table& table,
                                        const std::string& key, const KeyContext& context);

} // namespace sieve::service
