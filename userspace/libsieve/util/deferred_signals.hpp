// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keeps signals from interrupting a piece of work.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

namespace sieve {

// While an object of this class exists, a signal that would end the process only makes pending() true. The
// destructor raises the signal again. Meanwhile a file that grows too large (SIGXFSZ) is an error of
// write(2). Signals that are ignored or handled keep their disposition. The object affects the whole process,
// so only one may exist at a time.
class DeferredSignals {
  public:
    DeferredSignals();
    ~DeferredSignals();
    DeferredSignals(const DeferredSignals&) = delete;
    DeferredSignals& operator=(const DeferredSignals&) = delete;

    [[nodiscard]] bool pending() const;

  private:
    static constexpr std::array<int, 5> signals{SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGXFSZ};

    std::array<struct sigaction, signals.size()> before_{};
};

} // namespace sieve
