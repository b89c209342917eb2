// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The sets that change in place, each with its updater on a thread of its own (live/live_updater.hpp).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/live/live_updater.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/service/monitor/statistics.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {

class LiveSets {
  public:
    LiveSets(control::Kernel& kernel, const StateDirectory& state, HostAddresses& host, Log& log,
             watching::Statistics& statistics);
    LiveSets(const LiveSets&) = delete;
    LiveSets& operator=(const LiveSets&) = delete;
    ~LiveSets(); // as close()

    // Whether there is something to open that can wait until a cycle has put it in force: open() reads whole
    // lists. That takes a last good image of each live set of the configuration, and of its range set, and
    // that none of them has to catch up first: its list has changed since, or it comes to a hook where
    // packets are filtered already.
    [[nodiscard]] bool can_wait(const Configuration& configuration) const;

    // Opens the updaters of the configuration's live sets, in the place of those that are there. Afterwards
    // each of these sets has a last good image. Sets that were renamed take over their lists first
    // (take_over_renamed()). What cannot be opened is logged. Blocks: for a worker, without a cycle at work.
    // Throws what breaks it off.
    void open(const Configuration& configuration, const SandboxSettings& sandbox,
              const control::Observer& observer);
    // Lets the opened updaters work. A cycle has put their sets in force.
    void run();
    // Calls off what they do, and waits for their ends.
    void close();

    // Something has happened to the files of these sets. Those that are no live sets are left out.
    void wake(const std::set<std::string>& sets);
    // Waits until what an updater says of its set has come to pass, and returns what it says then, or in the
    // end. Nothing: nobody follows the set. From any thread.
    [[nodiscard]] std::optional<live::LiveUpdater::State>
    wait(const std::string& set, std::chrono::milliseconds patience,
         const std::function<bool(const live::LiveUpdater::State& state)>& has_come);
    // Whether a set that is followed has a ban of this single address. From any thread.
    [[nodiscard]] bool is_banned(const std::string& set, const live::Prefix& single) const;
    // The decisions that a set holds, by origin; nothing if nobody follows the set. From any thread.
    [[nodiscard]] std::vector<live::LiveUpdater::OriginCount> decisions(const std::string& set) const;
    // Something has happened to the hooks.
    void reconcile_all();
    // The set's last good image is in this map, and is about to come into force: it gets what has changed
    // since. The caller holds the controllers' lock and exclusive(). Nothing happens for other sets.
    void catch_up(const std::string& set, std::uint32_t map_id);

    // Held by whoever changes images or tables.
    [[nodiscard]] std::mutex& exclusive() { return exclusive_; }

    // What is wrong, one sentence for each set that has trouble.
    [[nodiscard]] std::vector<std::string> troubles() const;
    // A descriptor that becomes readable when a set gets into trouble or out of it, has a new image, or is
    // not followed any more, until acknowledge().
    [[nodiscard]] int troubles_changed() const { return troubles_changed_.get(); }
    void acknowledge();
    // Whether a set has a new image since this was last asked: a hook may have waited for it.
    [[nodiscard]] bool has_new_images() { return new_images_.exchange(false); }
    // Whether following a set broke off since this was last asked, such as for want of memory or of a thread.
    // It was logged, and open() begins anew.
    [[nodiscard]] bool has_broken_off() { return broken_off_.exchange(false); }

  private:
    class Runner;

    void tell(const live::LiveEvent& event);
    void open_all(const Configuration& configuration, const SandboxSettings& sandbox);
    void broke_off();
    [[nodiscard]] Runner* find(const std::string& set) const; // with mutex_

    control::Kernel& kernel_;
    const StateDirectory& state_;
    HostAddresses& host_;
    Log& log_;
    watching::Statistics& statistics_;
    UniqueFd troubles_changed_;
    std::atomic<bool> new_images_ = false;
    std::atomic<bool> broken_off_ = false;
    std::mutex exclusive_;
    mutable std::mutex mutex_; // of runners_
    std::vector<std::unique_ptr<Runner>> runners_;
    std::condition_variable stepped_; // with mutex_: an updater has done something, or has come
};

// The configuration's sets that cycles refresh: neither live sets nor their range sets.
[[nodiscard]] Configuration without_live_sets(const Configuration& configuration);

} // namespace sieve::service
