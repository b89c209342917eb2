// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Answers questions about bans (ban_talk.hpp): puts a change into the ledger, wakes the set that follows it,
// and says whether the change is in force. Each question has a thread of its own, and a time limit.
//
// Whoever may ban may also be slow, or mean to be. So nobody but root has more than a few of the threads, and
// all others together leave some to root. The end of the server waits for nobody at the other end.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

struct BanServerSettings {
    // For the whole of a question, and for the whole of an answer to be taken.
    std::chrono::milliseconds longest_talk{10000};
    // Who is at the other end of a socket; nothing: the kernel does not say. Null: asks the kernel.
    std::function<std::optional<ucred>(int socket)> who{};
};

class BanServer {
  public:
    BanServer(LiveSets& live, HostAddresses& host, Log& log, BanServerSettings settings = {});
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
    void answer(int socket, const ucred& who, int over);
    [[nodiscard]] BanAnswer answer_of(const BanQuestion& question);
    [[nodiscard]] Status change(const BanQuestion& question, const Configuration& configuration,
                                BanAnswer& answer);
    [[nodiscard]] bool may_ask(int socket, const ucred& who) const;
    [[nodiscard]] TalkLimit limit_of_talk(int over) const;

    LiveSets& live_;
    HostAddresses& host_;
    Log& log_;
    BanServerSettings settings_;

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
