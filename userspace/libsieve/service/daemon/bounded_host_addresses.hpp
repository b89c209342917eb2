// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The addresses that this host lives by, for whoever cannot wait for them.
#pragma once

#include <chrono>
#include <future>
#include <vector>

#include "libsieve/service/safety/host_addresses.hpp"

namespace sieve::service {

// Begins to read them at once, on a thread of its own.
class BoundedHostAddresses final : public HostAddresses {
  public:
    // read() waits until so long after the construction, and no longer.
    BoundedHostAddresses(HostAddresses& host, std::chrono::milliseconds patience);

    // Empty if the addresses are not known in time: then nothing is asked about them. Errors: those of the
    // host.
    Result<std::vector<HostAddress>> read() override;

    // Whether somebody read them before they were known.
    [[nodiscard]] bool was_late() const { return late_; }

  private:
    std::chrono::steady_clock::time_point deadline_;
    std::shared_future<Result<std::vector<HostAddress>>> answer_; // its end waits for the thread
    bool late_ = false;
};

} // namespace sieve::service
