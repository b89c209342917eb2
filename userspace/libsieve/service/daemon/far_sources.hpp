// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Asks the sources of sets that are not on this machine, each set on a thread of its own, beside the cycles:
// a server that is slow, hangs or lies delays its own set only.
//
// How much is at work at once is bounded. Half of the room is kept from sets that failed last time, so that
// those whose servers answer have room, however many servers hang. Lists are read by a few children at a
// time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include "libsieve/service/config/configuration.hpp"
#include "libsieve/service/daemon/agenda.hpp"
#include "libsieve/service/daemon/event_loop.hpp"
#include "libsieve/service/daemon/worker.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::service {

class FarSources {
  public:
    static constexpr std::size_t most_sets = 32;
    static constexpr std::size_t most_failing = most_sets / 2;
    static constexpr std::ptrdiff_t most_readers = 2;

    // A set whose sources have been asked.
    struct Answer {
        std::string set{};
        std::shared_ptr<const Configuration> configuration{};
        std::shared_ptr<SetSurvey> survey{}; // null: it broke off
        bool called_off = false;
    };

    // All of these outlive it. `answered` is called in the loop.
    FarSources(EventLoop& loop, const StateDirectory& state, HostAddresses& host, Log& log,
               std::function<void(Answer answer)> answered);
    FarSources(const FarSources&) = delete;
    FarSources& operator=(const FarSources&) = delete;
    ~FarSources(); // calls off, and waits

    [[nodiscard]] FarRoom room() const;
    // There is room. Error: no thread, or no descriptor.
    [[nodiscard]] Status ask(const std::shared_ptr<const Configuration>& configuration,
                             const SetConfiguration& set, bool failing, const SandboxSettings& sandbox);
    // What is at work is ended, and answers soon.
    void call_off();

  private:
    struct Visit;
    struct Seat; // a thread, and what it does

    void end(Seat& seat);

    EventLoop& loop_;
    const StateDirectory& state_;
    HostAddresses& host_;
    Log& log_;
    std::function<void(Answer answer)> answered_;
    std::counting_semaphore<most_readers> readers_{most_readers};
    std::vector<std::unique_ptr<Seat>> seats_;
};

} // namespace sieve::service
