// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which known word a misspelt one may have meant.
#pragma once

#include <string>
#include <vector>

namespace sieve {

// The known word that takes the fewest insertions, deletions, replacements and exchanges of neighbours to get
// (optimal string alignment distance), if those are at most a third of its letters; else an empty string.
[[nodiscard]] std::string closest_word(const std::string& word, const std::vector<std::string>& known);

} // namespace sieve
