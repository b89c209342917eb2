// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// IP protocol numbers and the names that people use for them.
#pragma once

#include <cstdint>
#include <string_view>

namespace sieve {

// The number of the protocol with this name, in either case; -1 if there is none.
[[nodiscard]] int protocol_number(std::string_view name);

// The common name of the protocol with this number; empty if there is none.
[[nodiscard]] std::string_view protocol_name(std::uint8_t number);

} // namespace sieve
