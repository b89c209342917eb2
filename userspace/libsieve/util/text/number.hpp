// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Numbers as people write them: 65536, 1e6, 1.5e-5, 64M.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// "1000000" or "1e6"; empty if the text is not a whole number from 0 to 2^64 - 1. Numbers with a point or an
// exponent may be at most 2^53, because larger ones are not exact.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(const std::string& text);

// "0.5" or "1e-5"; empty if the text is not a finite number.
[[nodiscard]] std::optional<double> parse_real(const std::string& text);

// "65536", "1e6", "512K", "64M", "1.5G" (powers of 1024).
[[nodiscard]] Result<std::uint64_t> parse_bytes(const std::string& text);

} // namespace sieve
