// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once

#include <string>

namespace sieve {

// Names the present run of the machine; empty if that cannot be read.
[[nodiscard]] std::string boot_id();

} // namespace sieve
