// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A table [[interface]], from TOML to values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libsieve/service/config/configuration.hpp"
#include "libsieve/service/config/configuration_section.hpp"

namespace sieve::service {

// The names of the sets that interfaces may use.
using SetNames = std::vector<std::string>;

// `before` are the entries that were read already: no two are for one hook.
[[nodiscard]] InterfaceConfiguration read_interface(Mistakes& mistakes, const toml::table& table,
                                                    const SetNames& sets,
                                                    const std::vector<InterfaceConfiguration>& before);

} // namespace sieve::service
