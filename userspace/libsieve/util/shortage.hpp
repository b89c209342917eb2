// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Exceptions that say that the machine, or a limit of the process, has no more to give.
#pragma once

#include <exception>

namespace sieve {

// True if memory, or a thread for want of memory, was not to be had: std::bad_alloc, std::system_error with
// ENOMEM or EAGAIN, and what oneTBB throws when pthread_create(3) fails.
[[nodiscard]] bool is_shortage(const std::exception& error);

} // namespace sieve
