// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keeps signals from interrupting a piece of work.
#pragma once

namespace sieve {

// While objects of this class exist, a signal that would end the process only makes pending() true. The
// destructor of the last one raises the signal again. Meanwhile a file that grows too large (SIGXFSZ) is an
// error of write(2). Signals that are ignored or handled keep their disposition. The objects affect the whole
// process; threads may have one each.
class DeferredSignals {
  public:
    DeferredSignals();
    ~DeferredSignals();
    DeferredSignals(const DeferredSignals&) = delete;
    DeferredSignals& operator=(const DeferredSignals&) = delete;

    [[nodiscard]] bool pending() const;
};

} // namespace sieve
