// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Recognises exceptions that mean: the machine, or a limit of the process, has no more to give.
#pragma once

#include <exception>

namespace sieve {

// True if the exception means that memory or a thread could not be had: std::bad_alloc, std::system_error
// with ENOMEM or EAGAIN, and the exception that oneTBB throws when pthread_create(3) fails.
[[nodiscard]] bool is_out_of_memory(const std::exception& error);

} // namespace sieve
