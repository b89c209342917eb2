// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The sources of a set's list, and of the data of countries and networks.
#pragma once

#include "libsieve/service/config/configuration_keys.hpp"
#include "libsieve/service/config/values/configuration.hpp"

namespace sieve::service {

// The keys of a source that is a table.
[[nodiscard]] const ConfigurationKeys<HttpSpec>& http_keys();
[[nodiscard]] const ConfigurationKeys<CommandSpec>& command_keys();
[[nodiscard]] const ConfigurationKeys<CrowdsecSpec>& crowdsec_keys();

// `sources` of a set. Those of countries and networks are found in the context's data.
[[nodiscard]] ConfigurationKey<SetConfiguration> sources_key();

// `geo` of the service: sources of lists, none of them a stream.
[[nodiscard]] ConfigurationKey<Configuration> geo_key();

} // namespace sieve::service
