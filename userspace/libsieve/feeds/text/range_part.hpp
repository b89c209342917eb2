// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Prefixes and ranges whose parts stand in cells of a row, or members of an object, that are side by side: an
// address and a length or netmask, or a first and a last address. Whoever reads the address alone loses the
// others.
#pragma once

#include <string_view>

namespace sieve::entry {

// Whether this is what lists call a prefix's length, a netmask, or a range's last address: "prefix_len",
// "netMask", "end_ip".
[[nodiscard]] bool names_range_part(std::string_view name);

// Whether the value under such a name makes more of a single address than itself: "24" and "255.255.255.0" of
// a netmask do, "32" does not. Never if the address is a prefix or a range.
[[nodiscard]] bool widens(std::string_view name, std::string_view value, std::string_view address);

} // namespace sieve::entry
