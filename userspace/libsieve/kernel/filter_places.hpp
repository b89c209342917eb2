// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The array-of-maps in which the running program finds its filters.
#pragma once

#include <cstdint>
#include <span>

#include "libsieve/util/result.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve::kernel {

// An empty array-of-maps of the program's shape, made before the program is loaded.
[[nodiscard]] Result<UniqueFd> create_filter_table();

// The same filters in both banks, the first one in slot 0; -1 leaves a place as it is.
[[nodiscard]] Status fill_both_banks(int table_fd, std::span<const int> filters);

} // namespace sieve::kernel
