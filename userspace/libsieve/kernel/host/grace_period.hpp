// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Waiting until every packet sees a change of the program's maps.
#pragma once

#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// Returns once every XDP program that was running when it was called has finished.
//
// XDP programs run inside RCU read-side critical sections, and the kernel runs synchronize_rcu() before an
// update of a map-in-map through the bpf() system call returns (maybe_wait_bpf_programs() in
// kernel/bpf/syscall.c, since Linux 4.20). Any map-in-map will do; we use a small one of our own, as the
// kernel's selftests do. membarrier(MEMBARRIER_CMD_GLOBAL) does the same, but not on nohz_full machines. A
// call took 8 ms where it was measured.
[[nodiscard]] Status grace_period();

} // namespace sieve::kernel
