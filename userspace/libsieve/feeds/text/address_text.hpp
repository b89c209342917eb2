// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Addresses as text.
#pragma once

#include <cstdint>
#include <string>

namespace sieve {

// Formats an address of a flow key. A v4-mapped address is written as IPv4, any other as RFC 5952 writes
// IPv6: lower case, with the longest run of at least two zero groups as "::" (the first run if several are
// equally long).
[[nodiscard]] std::string format_address(std::uint64_t upper, std::uint64_t lower);

} // namespace sieve
