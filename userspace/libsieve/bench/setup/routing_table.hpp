// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Synthetic prefix lists with the length distribution of the global routing table.
#pragma once

#include <cstdint>
#include <vector>

#include "libsieve/keys/address_range.hpp"

namespace sieve::bench {

// `count` random prefixes of IPv4 unicast space, of the lengths /8 to /24 in the shares of the table that
// docs/prefixes.md gives. The same count gives the same list.
[[nodiscard]] std::vector<AddressRange> routing_table_ipv4(std::uint64_t count);

// The same for IPv6: /20 to /48, in the parts of 2000::/3 that the registries allocate from.
[[nodiscard]] std::vector<AddressRange> routing_table_ipv6(std::uint64_t count);

} // namespace sieve::bench
