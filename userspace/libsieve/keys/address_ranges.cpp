// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/keys/address_ranges.hpp"

#include <algorithm>
#include <iterator>

#include "libsieve/util/parallel/parallel_sort.hpp"

namespace sieve {

int family_of(const AddressRange& range) {
    return is_ipv4(range.first) && is_ipv4(range.last) ? SIEVE_FAMILY_V4 : SIEVE_FAMILY_V6;
}

std::vector<AddressRange> merge_ranges(std::vector<AddressRange> ranges) {
    const auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
    if (!std::is_sorted(ranges.begin(), ranges.end(), before))
        sort_in_parallel(ranges.begin(), ranges.end(), before);
    std::vector<AddressRange> merged;
    for (const AddressRange& range : ranges) {
        const bool joins =
            !merged.empty() && (merged.back().last == last_address || range.first <= merged.back().last + 1);
        if (joins)
            merged.back().last = std::max(merged.back().last, range.last);
        else
            merged.push_back(range);
    }
    return merged;
}

bool holds_address(const std::vector<AddressRange>& merged, uint128 address) {
    const auto after =
        std::upper_bound(merged.begin(), merged.end(), address,
                         [](uint128 value, const AddressRange& range) { return value < range.first; });
    return after != merged.begin() && address <= std::prev(after)->last;
}

} // namespace sieve
