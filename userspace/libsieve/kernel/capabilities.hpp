// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What this kernel lets us do, found out by trying the least there is to it: each try takes a fraction of a
// millisecond, where our own program takes tens to be verified.
#pragma once

#include "libsieve/util/result.hpp"

namespace sieve::kernel {

// Refused if we may not load XDP programs at all: known before a set is built for minutes.
[[nodiscard]] Status may_load_programs();

// False if the kernel certainly refuses what libxdp's dispatcher lives on: programs that take the place of
// another's function (freplace), or if there is no bpffs for libxdp to keep its state in. True leaves it to
// libxdp to find out. What the kernel said is remembered: trying leaves programs for it to free, which takes
// a grace period, and to attach within that one takes two instead of one. So ask long before.
[[nodiscard]] bool may_use_dispatcher();

} // namespace sieve::kernel
