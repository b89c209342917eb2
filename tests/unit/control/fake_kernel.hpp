// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A whole kernel with one interface, eth0, for what needs all of it. It keeps what it is told, and notes the
// order of the calls. A test of one capability takes that fake alone.
#pragma once

#include "libsieve/control/access/kernel.hpp"
#include "unit/control/fakes/fake_observation.hpp"
#include "unit/control/fakes/fake_replies.hpp"
#include "unit/control/fakes/fake_trials.hpp"

namespace sieve::test {

class FakeKernel final : public control::Kernel,
                         public FakeTrials,
                         public FakeReplies,
                         public FakeObservation {};

} // namespace sieve::test
