// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A table [[interface]], from TOML to values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libsieve/service/config/configuration_keys.hpp"
#include "libsieve/service/config/values/configuration.hpp"

namespace sieve::service {

[[nodiscard]] const ConfigurationKeys<InterfaceConfiguration>& interface_keys();

// Whether an interface, or a pattern, can have this name.
[[nodiscard]] bool can_be_interface(const std::string& name);
inline constexpr std::size_t longest_interface_name = 15; // IFNAMSIZ - 1

// `before` are the entries that were read already: no two are for one hook.
[[nodiscard]] InterfaceConfiguration read_interface(Mistakes& mistakes, const toml::table& table,
                                                    const KeyContext& context,
                                                    const std::vector<InterfaceConfiguration>& before);

// Adds the sets of a table [[interface]] of another file to the entry that an earlier file has for that hook;
// `place` names that entry: "FILE:LINE". False: `entry` is for another hook, and nothing was done.
[[nodiscard]] bool bind_sets(Mistakes& mistakes, const toml::table& table, const KeyContext& context,
                             InterfaceConfiguration& entry, const std::string& place);

} // namespace sieve::service
