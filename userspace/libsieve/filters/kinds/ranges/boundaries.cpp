// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ranges/boundaries.hpp"

#include <limits>

namespace sieve::ranges {

namespace {

// Adds a range above all ranges that were added before it. It may be adjacent to the last one.
template <class Number>
void add(Boundaries<Number>& boundaries, Number first, Number last) {
    std::vector<Number>& at = boundaries.at;
    if (first == 0)
        boundaries.begins_inside = true;
    else if (!at.empty() && at.back() == first)
        at.pop_back();
    else
        at.push_back(first);
    if (last != static_cast<Number>(~Number{0})) at.push_back(last + 1);
}

// Adds a range of IPv6 addresses: the whole /64s in its middle, and a piece of a /64 at each end.
void add_ipv6(SetBoundaries& parts, const AddressRange& range) {
    constexpr std::uint64_t last_lower = std::numeric_limits<std::uint64_t>::max();
    const auto first = static_cast<std::uint64_t>(range.first >> 64);
    const auto last = static_cast<std::uint64_t>(range.last >> 64);
    const bool cut_first = static_cast<std::uint64_t>(range.first) != 0;
    const bool cut_last = static_cast<std::uint64_t>(range.last) != last_lower;
    if (first == last && (cut_first || cut_last)) return add(parts.fine, range.first, range.last);
    if (cut_first) add(parts.fine, range.first, address_number(first, last_lower));
    const std::uint64_t whole_first = first + (cut_first ? 1 : 0);
    const std::uint64_t whole_last = last - (cut_last ? 1 : 0);
    if (whole_first <= whole_last) add(parts.ipv6, whole_first, whole_last);
    if (cut_last) add(parts.fine, address_number(last, 0), range.last);
}

} // namespace

SetBoundaries boundaries_of(const AddressSet& set) {
    SetBoundaries parts;
    parts.ipv4.at.reserve(2 * set.members[SIEVE_FAMILY_V4].size());
    for (const AddressRange& range : set.members[SIEVE_FAMILY_V4])
        add(parts.ipv4, static_cast<std::uint32_t>(range.first), static_cast<std::uint32_t>(range.last));
    for (const AddressRange& range : set.members[SIEVE_FAMILY_V6]) add_ipv6(parts, range);
    return parts;
}

} // namespace sieve::ranges
