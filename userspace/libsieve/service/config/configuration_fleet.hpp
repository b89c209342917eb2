// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// [fleet] of the configuration.
#pragma once

#include "libsieve/service/config/configuration_keys.hpp"
#include "libsieve/service/config/values/fleet_configuration.hpp"

namespace sieve::service {

[[nodiscard]] const ConfigurationKeys<FleetConfiguration>& fleet_keys();
[[nodiscard]] const ConfigurationKeys<FleetEtcd>& etcd_keys();   // of [fleet.etcd]
[[nodiscard]] const ConfigurationKeys<FleetStore>& store_keys(); // of [fleet.store]

[[nodiscard]] FleetConfiguration read_fleet(Mistakes& mistakes, const toml::table& table,
                                            const KeyContext& context);

} // namespace sieve::service
