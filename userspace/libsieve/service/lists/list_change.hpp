// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What came into a list and what went.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/feeds/feed.hpp"

namespace sieve::service {

struct ListChange {
    std::uint64_t added = 0;
    std::uint64_t gone = 0;
    std::vector<std::string> first_added{}; // the lowest of them, as text
    std::vector<std::string> first_gone{};

    [[nodiscard]] bool any() const { return added + gone > 0; }
};

// Compares entries: a prefix that was replaced by its two halves is one gone and two added. Repetitions and
// order mean nothing. Both lists have the same fields. At most `examples` of each are spelt out.
[[nodiscard]] ListChange compare_lists(const Feed& before, const Feed& now, std::size_t examples = 5);

} // namespace sieve::service
