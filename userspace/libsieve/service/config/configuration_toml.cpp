// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#define TOML_IMPLEMENTATION
#include "libsieve/service/config/configuration_toml.hpp"

namespace sieve::service {

void give_up_parsing() {
    throw ParserFault();
}

} // namespace sieve::service
