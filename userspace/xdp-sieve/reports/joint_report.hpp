// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Describes a joint filter that was put in force, in words and as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "libsieve/control/joint/join.hpp"

namespace sieve::cli {

nlohmann::json to_json(const control::Joined& joined);

// "one lookup for a, b: 1,234 keys, 2.4 KiB, FPR 2.4e-5 for each set"
std::string describe(const control::Joined& joined);

} // namespace sieve::cli
