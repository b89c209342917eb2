// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Many things in one sentence: the first few by name, the others counted.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sieve {

inline constexpr std::size_t most_named = 8;

// "a", "a; b", "a; b; ... and 3 more": `names` joined, at most most_named of them. `count`: of all; the names
// behind the first most_named may be missing.
[[nodiscard]] std::string name_some(const std::vector<std::string>& names, std::size_t count);
[[nodiscard]] inline std::string name_some(const std::vector<std::string>& names) {
    return name_some(names, names.size());
}

} // namespace sieve
