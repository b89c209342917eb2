// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What this kernel allows. Each question is answered by a minimal attempt, which takes a fraction of a
// millisecond. Verifying our own program would take tens of milliseconds.
#pragma once

#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// An error if we may not load XDP programs at all. Ask before minutes are spent on building a set.
[[nodiscard]] Status may_load_programs();

// False if libxdp's dispatcher certainly cannot work: the kernel refuses programs that replace another's
// function (freplace), or there is no bpffs for libxdp's state. True means that libxdp has to find out. The
// answer is remembered. A try leaves programs that the kernel frees after a grace period, and attaching
// within that period takes two grace periods instead of one. So ask long before attaching.
[[nodiscard]] bool may_use_dispatcher();

} // namespace sieve::kernel
