// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// [service] of the configuration: what is about the host as a whole.
#pragma once

#include "libsieve/service/config/configuration_keys.hpp"
#include "libsieve/service/config/values/configuration.hpp"

namespace sieve::service {

[[nodiscard]] const ConfigurationKeys<Configuration>& service_keys();

void read_service(Mistakes& mistakes, const toml::table& table, const KeyContext& context,
                  Configuration& into);

} // namespace sieve::service
