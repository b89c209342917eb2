// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How much of a builder's time a filter is worth.
#pragma once

#include <cstdint>
#include <string>

#include <sieve/image.h>

#include "libsieve/util/result.hpp"

namespace sieve {

enum class Effort {
    fast,   // each key is placed once, and stays
    normal, // rebalanced until further rounds gain little
    best,   // rebalanced until they gain next to nothing
};

// "fast", "normal" or "best".
[[nodiscard]] const char* effort_name(Effort effort);
[[nodiscard]] Result<Effort> parse_effort(const std::string& text);

// Rounds of rebalancing, measured (docs/performance.md); `choices` are the kind's: lines, groups or
// subtables.
[[nodiscard]] std::uint32_t rounds_for(Effort effort, std::uint32_t kind, std::uint32_t choices);

} // namespace sieve
