// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A table of kind `exact` whose keys come and go under lookups: both parts, and the header that counts them.
#pragma once

#include <span>

#include <sieve/image.h>

#include "libsieve/filters/changeable_table.hpp"
#include "libsieve/filters/kinds/exact/exact_changes.hpp"
#include "libsieve/filters/kinds/exact/exact_listing.hpp"

namespace sieve::exact {

class LiveTable final : public ChangeableTable {
  public:
    /// Errors: the lines do not belong to the header; the keys have values.
    [[nodiscard]] static Result<std::unique_ptr<ChangeableTable>>
    open(const sieve_lookup& lookup, sieve_file& file, std::span<sieve_line> lines);

    LiveTable(const sieve_lookup& lookup, sieve_file& file, std::span<sieve_line> lines);

    [[nodiscard]] bool unsettled() const override { return part_.unsettled != 0; }
    [[nodiscard]] Status settle(const WaitForLookups& wait) override;
    [[nodiscard]] bool contains(const sieve_key& key) const override;
    [[nodiscard]] bool has_room_for(const KeySet& keys) const override;
    [[nodiscard]] Result<TableChange> change(const KeySet& removed, const KeySet& added,
                                             const WaitForLookups& wait) override;

  private:
    [[nodiscard]] uint128 address_of(const sieve_key& key) const;
    [[nodiscard]] Status remove(const KeySet& keys, const WaitForLookups& wait, TableChange& change);
    [[nodiscard]] Status add(const KeySet& keys, const WaitForLookups& wait, TableChange& change);
    [[nodiscard]] Begun begin(uint128 address);
    void count(const TableChange& change);

    const sieve_lookup& lookup_;
    sieve_file& file_;
    std::span<sieve_line> lines_;
    sieve_exact_ipv6& part_;
    Ipv4Changes ipv4_;
    Ipv6Changes ipv6_;
    HashSum sum_{}; // of what came, less what went, since the header was written
};

} // namespace sieve::exact
