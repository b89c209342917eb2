// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells the daemon that somebody has paused or resumed an interface (pauses.hpp). It watches the state
// directory by inotify. What has changed is read from there: an event only says that it is time to look.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "libsieve/service/daemon/event_loop.hpp"
#include "libsieve/util/result.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve::service {

class PauseWatch {
  public:
    // Errors: the kernel's.
    [[nodiscard]] static Result<std::unique_ptr<PauseWatch>> start(EventLoop& loop, const std::string& state,
                                                                   std::function<void()> changed);
    PauseWatch(const PauseWatch&) = delete;
    PauseWatch& operator=(const PauseWatch&) = delete;
    ~PauseWatch() = default;

  private:
    explicit PauseWatch(std::function<void()> changed) : changed_(std::move(changed)) {}
    void read();

    std::function<void()> changed_;
    UniqueFd inotify_;
    EventSource source_; // ends before the descriptor
};

} // namespace sieve::service
