// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Memory for a thread that must go on when the process gets no more.
#pragma once

namespace sieve {

// From now on, when operator new finds no memory on the calling thread, it gets half a MiB that was put by.
// Puts that by, or again what was used, as far as there is memory. It is address space alone until then. Only
// one thread of a process has a reserve: the first that called.
void keep_memory_in_reserve();

} // namespace sieve
