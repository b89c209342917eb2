// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whether the list of a set in force has a key, and where.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/query/explain.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::cli {

// What a search of a set's list found.
struct Searched {
    std::string place{}; // where the list has the key, such as "bad.txt:7"; empty: nowhere
    // The names of the lists that the set was built of, if not all of them were searched.
    std::string all_lists{};

    [[nodiscard]] bool found() const { return !place.empty(); }
    [[nodiscard]] bool complete() const { return all_lists.empty(); }
};

// Searches these lists. Errors: those of reading them.
[[nodiscard]] Result<Searched> search_feeds(const std::vector<std::string>& feeds,
                                            const control::SetAnswer& answer, const sieve_key& key);

// Searches the list that the daemon keeps of the set. Nothing if no daemon manages this network namespace, if
// its list cannot be read, or if another list's filter is in force.
[[nodiscard]] std::optional<Searched> search_kept_list(const control::SetAnswer& answer,
                                                       const sieve_key& key);

} // namespace sieve::cli
