// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What data of countries and networks says of one address. Implemented in feed.cpp, by the same reader.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// What each of the data that has the address says: "DE", or "AS3320 (Deutsche Telekom AG)". Errors: those of
// read_feed() for a list of the format geo.
[[nodiscard]] Result<std::vector<std::string>> find_origin(std::span<Input> data, uint128 address);

} // namespace sieve
