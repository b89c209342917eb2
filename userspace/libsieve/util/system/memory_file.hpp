// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A file in memory, which a process can hand to its child.
#pragma once

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve {

// Empty, and it may be sealed (F_ADD_SEALS). The name is for people who look at descriptors. Error:
// out_of_memory.
[[nodiscard]] Result<UniqueFd> make_memory_file(const char* name);

} // namespace sieve
