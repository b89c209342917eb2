// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Suggests the known word that a misspelt word may have meant.
#pragma once

#include <string>
#include <vector>

namespace sieve {

// Returns the known word that is the fewest insertions, deletions, replacements and swaps of neighbours away
// (optimal string alignment distance). Returns an empty string if that distance is more than a third of the
// word's letters.
[[nodiscard]] std::string closest_word(const std::string& word, const std::vector<std::string>& known);

} // namespace sieve
