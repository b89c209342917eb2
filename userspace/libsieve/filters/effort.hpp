// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How much of a builder's time a filter is worth.
#pragma once

#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve {

enum class Effort {
    fast,   // each key is placed once and never moved
    normal, // rebalanced until further rounds gain little
    best,   // rebalanced until further rounds gain next to nothing
};

// "fast", "normal" or "best".
[[nodiscard]] const char* effort_name(Effort effort);
[[nodiscard]] Result<Effort> parse_effort(const std::string& text);

} // namespace sieve
