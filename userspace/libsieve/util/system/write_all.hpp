// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Writing to a descriptor that takes less at a time than it is given.
#pragma once

#include <string_view>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// Writes all of it where the descriptor stands. 0, or errno.
[[nodiscard]] int write_whole(int to, std::string_view bytes);

// Writes all of it where the descriptor stands. bad_input: "cannot be written: WHY".
[[nodiscard]] Status write_all(int to, std::string_view bytes);

} // namespace sieve
