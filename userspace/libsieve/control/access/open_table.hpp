// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The table of a set in force that lists its keys and lets them change one by one (kind `exact`).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "libsieve/control/access/filters.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// A set in force whose table is open for changes, as its last writer left it or settled. The lock is held.
struct OpenTable {
    std::unique_ptr<RunningFilter> filter; // owns what the table changes
    std::unique_ptr<ChangeableTable> table;

    // All members, each once.
    [[nodiscard]] Result<KeySet> list() const;
    // Entries that have ended by `now` included.
    [[nodiscard]] Status for_each_entry(std::uint64_t now, const VisitEntry& visit) const;
    [[nodiscard]] bool has_ends() const;
};

// Whether sets of this kind list their keys and let them change one by one.
[[nodiscard]] bool lists_and_changes(const sieve_lookup& lookup);

// Opens the set's table, and settles it if its last writer died.
[[nodiscard]] Result<OpenTable> open_table(Filters& kernel, const std::string& name, std::uint32_t map_id);

} // namespace sieve::control
