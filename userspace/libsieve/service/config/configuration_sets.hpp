// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A table [set.NAME], from TOML to values.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "libsieve/service/config/configuration.hpp"
#include "libsieve/service/config/configuration_section.hpp"

namespace sieve::service {

// Paths of sources that are not absolute start from `folder`. `key` is the table's: "set.NAME". `defaults` is
// what servers among the sources have that say nothing else; `geo` is the data of countries and networks.
[[nodiscard]] SetConfiguration read_set(Mistakes& mistakes, const std::string& name, const toml::table& table,
                                        const std::string& key, const std::filesystem::path& folder,
                                        const HttpAccess& defaults, const std::vector<SourceSpec>& geo);

} // namespace sieve::service
