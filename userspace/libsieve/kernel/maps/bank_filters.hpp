// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The array-of-maps in which the running program finds its filters.
#pragma once

#include <cstdint>
#include <future>
#include <span>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

// An empty array-of-maps of the program's shape, made before the program is loaded.
[[nodiscard]] Result<UniqueFd> create_filter_table();

// The same filters in both banks, the first one in slot 0; -1 leaves a map index as it is.
[[nodiscard]] Status fill_both_banks(int table_fd, std::span<const int> filters);

// The same, but returns as soon as the filters are in place. The future becomes ready after the grace period,
// when no packet uses the filters that were there before. It has no state if there is nothing to wait for.
[[nodiscard]] Result<std::future<Status>> begin_to_fill_both_banks(UniqueFd table,
                                                                   std::span<const int> filters);

} // namespace sieve::kernel
