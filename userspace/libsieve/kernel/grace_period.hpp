// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// When is a change of the program's maps seen by every packet?
#pragma once

#include "libsieve/util/result.hpp"

namespace sieve::kernel {

// Returns once every XDP program that was running when it was called has finished.
//
// XDP programs run inside RCU read-side critical sections, and the kernel runs synchronize_rcu() before an
// update of a map-in-map through the bpf() system call returns (maybe_wait_bpf_programs() in
// kernel/bpf/syscall.c, since Linux 4.20), whatever map it is: a small one of our own serves, as in the
// kernel's own selftests. membarrier(MEMBARRIER_CMD_GLOBAL) does the same, but not on nohz_full machines.
// Costs 8 ms here.
[[nodiscard]] Status grace_period();

} // namespace sieve::kernel
