// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Wakes whoever polls a descriptor: an eventfd that is readable from the time when it is set until it is
// cleared.
#pragma once

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve {

// Not set. Reading and writing it never block. out_of_memory: the kernel gives no eventfd.
[[nodiscard]] Result<UniqueFd> make_event();

void set_event(int event);
void clear_event(int event);

} // namespace sieve
