// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What came and went between two lists, key by key.
#pragma once

#include <string>
#include <vector>

#include "libsieve/keys/members.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct ListDifference {
    std::vector<std::string> added; // as text, ascending: keys, and prefixes of ranges
    std::vector<std::string> gone;

    [[nodiscard]] bool any() const { return !added.empty() || !gone.empty(); }
};

// Compares the members, however the entries state them: a prefix equals its two halves. Both lists have the
// same fields. bad_input: an entry of the one list names a field that an entry of the other leaves open for
// the same keys.
[[nodiscard]] Result<ListDifference> compare_lists(const Members& before, const Members& now);

} // namespace sieve::control
