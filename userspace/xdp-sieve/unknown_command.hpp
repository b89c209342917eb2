// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Suggests which command a misspelt word may have meant.
#pragma once

#include <string>
#include <vector>

namespace sieve::cli {

// 'unknown command "laod"; did you mean load? See `xdp-sieve --help`'
[[nodiscard]] std::string unknown_command(const std::string& word, const std::vector<std::string>& known);

} // namespace sieve::cli
