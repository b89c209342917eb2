// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reading from a descriptor that gives less at a time than it is asked for.
#pragma once

#include <cstddef>

namespace sieve {

// Reads so many bytes from where the descriptor stands. False: there are not so many, or they cannot be read.
[[nodiscard]] bool read_whole(int from, void* to, std::size_t bytes);

} // namespace sieve
