// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/prefixes/address_set.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "libsieve/keys/address_ranges.hpp"

namespace sieve {

AddressSet address_set_of(std::vector<AddressRange> ranges) {
    AddressSet set;
    const auto v6 = std::stable_partition(ranges.begin(), ranges.end(), [](const AddressRange& range) {
        return family_of(range) == SIEVE_FAMILY_V4;
    });
    set.members[SIEVE_FAMILY_V6].assign(v6, ranges.end());
    ranges.erase(v6, ranges.end());
    set.members[SIEVE_FAMILY_V4] = std::move(ranges);
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        set.members[family] = merge_ranges(std::move(set.members[family]));
        for (const AddressRange& range : set.members[family]) {
            const double addresses = static_cast<double>(range.last - range.first) + 1;
            set.covered[family] += std::ldexp(addresses, family == SIEVE_FAMILY_V4 ? -32 : -128);
        }
    }
    return set;
}

bool is_member(const AddressSet& set, uint128 address) {
    return holds_address(set.members[is_ipv4(address) ? SIEVE_FAMILY_V4 : SIEVE_FAMILY_V6], address);
}

} // namespace sieve
