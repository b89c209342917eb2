// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// [fleet] of the configuration.
#pragma once

#include <filesystem>

#include "libsieve/service/config/configuration_section.hpp"
#include "libsieve/service/config/configuration_toml.hpp"
#include "libsieve/service/config/fleet_configuration.hpp"

namespace sieve::service {

// `folder`: where paths that are not absolute start.
[[nodiscard]] FleetConfiguration read_fleet(Mistakes& mistakes, const toml::table& table,
                                            const std::filesystem::path& folder);

} // namespace sieve::service
