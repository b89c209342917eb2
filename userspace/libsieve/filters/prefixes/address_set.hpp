// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A set of addresses in its simplest form: disjoint ranges in order.
#pragma once

#include <cstdint>
#include <vector>

#include <sieve/prefix.h>

#include "libsieve/keys/address_range.hpp"

namespace sieve {

struct AddressSet {
    // All addresses of the set, by family: disjoint, ascending, not adjacent. An IPv6 range that includes the
    // v4-mapped addresses does not mean IPv4, since a packet is asked only for those of its own family.
    std::vector<AddressRange> members[SIEVE_FAMILIES];
    double covered[SIEVE_FAMILIES] = {0, 0}; // share of the family's addresses that are members

    [[nodiscard]] std::uint64_t ranges() const { return members[0].size() + members[1].size(); }
};

[[nodiscard]] AddressSet address_set_of(std::vector<AddressRange> ranges);

[[nodiscard]] bool is_member(const AddressSet& set, uint128 address);

} // namespace sieve
