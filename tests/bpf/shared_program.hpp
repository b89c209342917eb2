// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One copy of the program at each hook for all tests that can do with it. The kernel takes longer to verify
// the program than most of these tests take.
#pragma once

#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve::test {

// The copy at this hook, with tracing, as if it had just been loaded: without sets and notes, and with all
// counters at zero, whatever the test before did. The reference holds until the tests end.
[[nodiscard]] kernel::Scratch& shared_program(kernel::HookPoint point = kernel::HookPoint::xdp);

} // namespace sieve::test
