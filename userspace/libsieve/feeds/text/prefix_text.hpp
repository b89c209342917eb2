// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keys that share their first bits, as text.
#pragma once

#include <cstdint>
#include <string>

#include <sieve/image.h>

namespace sieve {

// "192.0.2.0/24 443 tcp", as a feed states it, with * for a field that does not matter.
[[nodiscard]] std::string format_prefix(const sieve_exception& prefix, std::uint32_t fields);

} // namespace sieve
