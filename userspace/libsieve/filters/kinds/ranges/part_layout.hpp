// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One part of a `ranges` filter as lines (sieve/ranges.h): chooses the size of its cells, counts its lines
// and writes them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <sieve/ranges.h>

#include "libsieve/filters/kinds/ranges/boundaries.hpp"

namespace sieve::ranges {

class PartLayout {
  public:
    virtual ~PartLayout() = default;

    // Lines of the table, and of all that its entries lead to.
    [[nodiscard]] virtual std::uint64_t table_lines() const = 0;
    [[nodiscard]] virtual std::uint64_t body_lines() const = 0;

    // Writes the part's geometry into the header. The table begins at line `table` of the filter.
    virtual void describe(sieve_lookup& lookup, std::uint64_t table) const = 0;

    // Writes the part's lines into the filter: the table at line `table`, the rest at line `body`.
    virtual void fill(std::span<sieve_line> filter, std::uint64_t table, std::uint64_t body) const = 0;
};

// The layouts of the three parts, in the order of enum sieve_ranges_part. They keep references to the
// boundaries.
[[nodiscard]] std::unique_ptr<PartLayout> layout_of(const Boundaries<std::uint32_t>& ipv4);
[[nodiscard]] std::unique_ptr<PartLayout> layout_of(const Boundaries<std::uint64_t>& ipv6);
[[nodiscard]] std::unique_ptr<PartLayout> layout_of(const Boundaries<uint128>& fine);

} // namespace sieve::ranges
