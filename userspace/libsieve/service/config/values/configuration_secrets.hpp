// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a configuration lets others see.
#pragma once

#include <string>
#include <vector>

#include "libsieve/service/config/values/configuration.hpp"

namespace sieve::service {

// A sentence for each password and key that goes over plain http to another host, each once.
[[nodiscard]] std::vector<std::string> exposed_passwords(const Configuration& configuration);

} // namespace sieve::service
