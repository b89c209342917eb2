// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells at once which sets' files have changed, by inotify(7).
//
// Files that are still being written do not count before they are closed. Files that come by a rename, as
// editors and package managers write them, count at once. A folder that is moved away, removed or made again
// is followed by its path. After an overflow of the kernel's queue, every set counts as changed.
//
// Not seen: changes that another host makes to a network file system, what a mount hides, and a file that
// gets its only name by link(2) in the same step of the file system's time in which it was written. The sets'
// timers find these.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/daemon/event_loop.hpp"
#include "libsieve/service/daemon/watch_points.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/util/system/unique_fd.hpp"

struct inotify_event;

namespace sieve::service {

class ListWatch {
  public:
    using Changed = std::function<void(const std::set<std::string>& sets)>;

    // Must stay where it is.
    ListWatch(EventLoop& loop, Log& log, Changed changed);
    ListWatch(const ListWatch&) = delete;
    ListWatch& operator=(const ListWatch&) = delete;
    ~ListWatch() = default;

    // Watches the files of these sets, and no others. What cannot be watched is logged once. Error: no
    // descriptor.
    [[nodiscard]] Status follow(const Configuration& configuration);

  private:
    struct Interest {
        std::string set;
        WatchPoint point;
    };
    using Interests = std::map<std::string, std::vector<Interest>>; // by folder

    [[nodiscard]] Interests find() const;
    void watch();
    void read();
    void take(const inotify_event& event);
    void take(const std::string& folder, const inotify_event& event);
    void look_again();

    EventLoop& loop_;
    Log& log_;
    Changed changed_;
    std::vector<SetConfiguration> sets_; // with sources only
    Interests interests_;
    std::map<int, std::set<std::string>> folders_; // by watch; a folder may have several paths
    std::set<std::string> unwatched_;              // folders, whose trouble has been logged
    std::set<std::string> moved_;                  // sets, whose points must be found anew
    UniqueFd inotify_;
    EventSource readable_;
    EventSource again_;
};

} // namespace sieve::service
