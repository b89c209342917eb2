// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Things that are counted in a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace sieve {

// "1 key", "2 keys".
[[nodiscard]] inline std::string counted(std::uint64_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

// "1 entry", "2 entries".
[[nodiscard]] inline std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

} // namespace sieve
