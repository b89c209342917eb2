// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kernel's side as control sees it, by capability. This is a seam: it lets tests cover all of control's
// decisions without root. There are two implementations, RealKernel and the tests' fakes. A function that
// needs one capability takes that one, so that a test of it needs no more. The bases are virtual, so that a
// fake kernel is put together from a fake of each capability.
#pragma once

#include "libsieve/control/access/filters.hpp"
#include "libsieve/control/access/hooks.hpp"
#include "libsieve/control/access/observation.hpp"
#include "libsieve/control/access/replies.hpp"
#include "libsieve/control/access/trials.hpp"

namespace sieve::control {

class Kernel : public virtual Hooks,
               public virtual Trials,
               public virtual Replies,
               public virtual Filters,
               public virtual Observation {};

} // namespace sieve::control
