// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A table of kind `exact` whose keys come and go under lookups: both parts, and the header that counts them.
#pragma once

#include <optional>
#include <span>

#include <sieve/image.h>

#include "libsieve/filters/changeable_table.hpp"
#include "libsieve/filters/kinds/exact/exact_changes.hpp"
#include "libsieve/filters/kinds/exact/exact_listing.hpp"

namespace sieve::exact {

class LiveTable final : public ChangeableTable {
  public:
    /// Errors: the lines do not belong to the header; the keys have values that are no ends.
    [[nodiscard]] static Result<std::unique_ptr<ChangeableTable>>
    open(const sieve_lookup& lookup, sieve_file& file, std::span<sieve_line> lines);

    LiveTable(const sieve_lookup& lookup, sieve_file& file, std::span<sieve_line> lines);

    [[nodiscard]] bool unsettled() const override { return part_.unsettled != 0; }
    [[nodiscard]] Status settle(const WaitForLookups& wait) override;
    [[nodiscard]] std::optional<std::uint64_t> end_of(const sieve_key& key) const override;
    [[nodiscard]] bool can_state(std::uint64_t life) const override;
    [[nodiscard]] std::uint64_t delay_of_ends() const override {
        return values_.meaning == SIEVE_EXACT_ENDS ? std::uint64_t{1} << values_.unit : 0;
    }
    [[nodiscard]] Status set_end(const sieve_key& key, std::uint64_t end) override;
    void mark(const sieve_key& key) override;
    [[nodiscard]] bool has_room_for(const KeySet& keys) const override;
    [[nodiscard]] Result<TableChangeResult> change(const KeySet& removed, const KeySet& added,
                                                   const WaitForLookups& wait, std::uint64_t end) override;
    [[nodiscard]] Result<std::uint64_t> sweep(const WaitForLookups& wait) override;

  private:
    [[nodiscard]] uint128 address_of(const sieve_key& key) const;
    [[nodiscard]] Status remove(const KeySet& keys, const WaitForLookups& wait, TableChangeResult& change);
    [[nodiscard]] Status add(const KeySet& keys, std::uint32_t value, const WaitForLookups& wait,
                             TableChangeResult& change);
    [[nodiscard]] Begun begin(uint128 address, std::uint32_t value);
    [[nodiscard]] std::optional<std::uint32_t> value_of(uint128 address) const;
    void set_value(uint128 address, std::uint32_t value);
    void count(const TableChangeResult& change);

    const sieve_lookup& lookup_;
    sieve_file& file_;
    std::span<sieve_line> lines_;
    sieve_exact_ipv6& part_;
    Values values_;
    Ipv4Changes ipv4_;
    Ipv6Changes ipv6_;
    HashSum sum_{};             // of what came, less what went, since the header was written
    std::uint64_t revived_ = 0; // of what came: keys whose entries had ended and were still there
};

} // namespace sieve::exact
