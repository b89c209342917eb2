// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Answers questions about bans (ban_talk.hpp): puts a change into the ledger, wakes the set that follows it,
// and says whether the change is in force. Each question has a thread of its own, and a time limit.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/contact/ban_talk.hpp"
#include "libsieve/service/daemon/live_sets.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {

class BanServer {
  public:
    BanServer(LiveSets& live, HostAddresses& host, Log& log) : live_(live), host_(host), log_(log) {}
    BanServer(const BanServer&) = delete;
    BanServer& operator=(const BanServer&) = delete;
    ~BanServer(); // answers no more

    // Listens at that path while the configuration has sets with bans, for root and the configuration's
    // group. What prevents that is logged.
    void follow(std::shared_ptr<const Configuration> configuration, const std::string& path);

  private:
    [[nodiscard]] Status listen(const std::string& path, const std::string& group);
    void close();
    void serve(int listener, int over);
    void answer(UniqueFd socket);
    [[nodiscard]] BanAnswer answer_of(const BanQuestion& question);
    [[nodiscard]] Status change(const BanQuestion& question, const Configuration& configuration,
                                BanAnswer& answer);
    [[nodiscard]] bool may_ask(int socket) const;

    LiveSets& live_;
    HostAddresses& host_;
    Log& log_;

    std::mutex mutex_; // of what follows
    std::shared_ptr<const Configuration> configuration_;
    std::map<std::string, std::shared_ptr<BanLedger>> ledgers_;

    std::mutex changing_; // one change at a time goes into a ledger
    std::string path_;
    std::string group_;
    long group_id_ = -1; // -1: none
    UniqueFd listener_;
    std::atomic<bool> ends_ = false; // answers are not worth waiting for
    UniqueFd over_;
    std::thread thread_;
};

} // namespace sieve::service
