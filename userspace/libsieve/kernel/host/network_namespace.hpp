// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once

#include <cstdint>

#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// The inode number of the calling thread's network namespace. It tells living namespaces apart; a later one
// may get the number of one that is gone.
[[nodiscard]] Result<std::uint64_t> network_namespace();

} // namespace sieve::kernel
