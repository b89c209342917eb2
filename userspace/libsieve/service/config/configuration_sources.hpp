// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The key `sources` of a set, from TOML to values.
#pragma once

#include <filesystem>

#include "libsieve/service/config/configuration.hpp"
#include "libsieve/service/config/configuration_section.hpp"

namespace sieve::service {

// Paths that are not absolute start from `folder`. `defaults` is what servers have that say nothing else.
void read_sources(Section& section, const std::filesystem::path& folder, const HttpAccess& defaults,
                  SetConfiguration& set);

} // namespace sieve::service
