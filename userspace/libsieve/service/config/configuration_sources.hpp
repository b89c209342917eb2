// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Sources, from TOML to values: the key `sources` of a set, and the data that names such as "country:DE"
// stand for.
#pragma once

#include <filesystem>
#include <vector>

#include "libsieve/service/config/configuration.hpp"
#include "libsieve/service/config/configuration_section.hpp"

namespace sieve::service {

// Paths that are not absolute start from `folder`. `defaults` is what servers have that say nothing else. A
// source that names a country or a network stands for a choice from `geo`: such a set has the sources of
// `geo`, and the format that chooses.
void read_sources(Section& section, const std::filesystem::path& folder, const HttpAccess& defaults,
                  const std::vector<SourceSpec>& geo, SetConfiguration& set);

// The key `geo` of [service].
void read_geo(Section& section, const std::filesystem::path& folder, const HttpAccess& defaults,
              std::vector<SourceSpec>& geo);

} // namespace sieve::service
