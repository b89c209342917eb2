// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells the daemon what people have written into its state directory: pauses of interfaces (pauses.hpp), and
// lists that they accept (refusals.hpp). It watches the directory by inotify. What has changed is read from
// there: an event only says that it is time to look.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "libsieve/service/daemon/event_loop.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {

class StateWatch {
  public:
    struct Changed {
        std::function<void()> pauses;
        std::function<void()> refusals; // by this process, too
    };
    // Errors: the kernel's.
    [[nodiscard]] static Result<std::unique_ptr<StateWatch>> start(EventLoop& loop, const std::string& state,
                                                                   Changed changed);
    StateWatch(const StateWatch&) = delete;
    StateWatch& operator=(const StateWatch&) = delete;
    ~StateWatch() = default;

  private:
    explicit StateWatch(Changed changed) : changed_(std::move(changed)) {}
    void read();

    Changed changed_;
    UniqueFd inotify_;
    EventSource source_; // ends before the descriptor
};

} // namespace sieve::service
