// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A stretch of work that signals must not cut in two.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

namespace sieve {

// While an object lives, a signal that would end the process only makes pending() true; the process gets it
// again when the object goes. A file that is too large (SIGXFSZ) is an error of write(2) meanwhile. Signals
// that are ignored or handled stay so. For the whole process: one object at a time.
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
