// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once

namespace sieve {

inline constexpr const char* version = "0.1.0";

} // namespace sieve
