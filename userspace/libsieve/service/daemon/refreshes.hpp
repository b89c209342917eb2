// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Refreshes sets beside the cycles: asks their sources, and builds the images of lists that have changed.
// Each refresh has a thread of its own, so a server that is slow, hangs or lies, and a list that takes long
// to build, delay their own sets only.
//
// How much is at work at once is bounded. Lists are read and images built by a few children at a time, apart
// for long lists and for others. Half of the room for servers is kept from sets that failed last time, so
// that those whose servers answer have room, however many servers hang.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <semaphore>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/daemon/event_loop.hpp"
#include "libsieve/service/daemon/schedule.hpp"
#include "libsieve/service/daemon/worker.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

class Refreshes {
  public:
    static constexpr std::size_t most_far = 32;
    static constexpr std::size_t most_failing = most_far / 2;
    static constexpr std::size_t most_near = 4;
    static constexpr std::size_t most_long = 2;
    static constexpr std::ptrdiff_t most_children = 2; // that read or build: for long lists, and for others

    // What has become of a refresh.
    struct Done {
        Refresh refresh{};
        std::shared_ptr<const Configuration> configuration{};
        std::vector<SetSurvey> surveys{}; // empty: it broke off
        bool called_off = false;
    };

    // All of these outlive it. `done` is called in the loop.
    Refreshes(EventLoop& loop, control::Kernel& kernel, const StateDirectory& state, HostAddresses& host,
              Log& log, std::function<void(Done done)> done);
    Refreshes(const Refreshes&) = delete;
    Refreshes& operator=(const Refreshes&) = delete;
    ~Refreshes(); // calls off, and waits

    [[nodiscard]] RefreshRoom room() const;
    [[nodiscard]] std::size_t at_work() const;
    // There is room. Error: no thread, or no descriptor.
    [[nodiscard]] Status begin(const std::shared_ptr<const Configuration>& configuration,
                               const Refresh& refresh, const SandboxSettings& sandbox);
    // What is at work is ended, and done soon.
    void call_off();

  private:
    struct Job;
    struct Thread;

    void end(Thread& thread);

    EventLoop& loop_;
    control::Kernel& kernel_;
    const StateDirectory& state_;
    HostAddresses& host_;
    Log& log_;
    std::function<void(Done done)> done_;
    std::counting_semaphore<most_children> for_long_{most_children};
    std::counting_semaphore<most_children> for_others_{most_children};
    std::vector<std::unique_ptr<Thread>> threads_;
};

} // namespace sieve::service
