// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Stands in for the daemon and its log.
#pragma once

#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>

#include "libsieve/fleet/node/local_node.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/util/files/digest.hpp"

namespace sieve::fleet::test {

// Has one set, "bad". What the file says is in force, unless it holds the word "refused".
class StandIn final : public LocalNode {
  public:
    explicit StandIn(std::string folder) : file_(std::move(folder) + "/current/bad") {}

    [[nodiscard]] std::map<std::string, LocalSet> sets() const override {
        const std::lock_guard lock(mutex_);
        std::ostringstream text;
        text << std::ifstream(file_, std::ios::binary).rdbuf();
        LocalSet set;
        set.begun = set.ended = ++looks_;
        if (text.str().find("refused") != std::string::npos)
            set.trouble = "a guard refused it";
        else if (!text.str().empty())
            in_force_ = text.str();
        set.contents = {digest_of(in_force_)};
        set.identity = digest_of(in_force_);
        return {{"bad", set}};
    }
    [[nodiscard]] Result<FiltersInForce> running() const override {
        const std::lock_guard lock(mutex_);
        return FiltersInForce{.identities = {{"bad", {digest_of(in_force_)}}}};
    }
    [[nodiscard]] NodeTraffic traffic() const override {
        const std::lock_guard lock(mutex_);
        // A list that says so drops half of all packets from now on.
        packets_ += 2000;
        if (in_force_.find("everything") != std::string::npos) dropped_ += 1000;
        return {packets_, dropped_, dropped_};
    }
    [[nodiscard]] std::string in_force() const {
        const std::lock_guard lock(mutex_);
        return in_force_;
    }

  private:
    std::string file_;
    mutable std::mutex mutex_;
    mutable std::string in_force_;
    mutable std::uint64_t looks_ = 0;
    mutable std::uint64_t packets_ = 0;
    mutable std::uint64_t dropped_ = 0;
};

class Quiet final : public service::Log {
  public:
    void write(service::LogLevel, const std::string& sentence, const service::LogFields&) override {
        const std::lock_guard lock(mutex_);
        text_ += sentence + '\n';
    }
    [[nodiscard]] std::string text() const {
        const std::lock_guard lock(mutex_);
        return text_;
    }

  private:
    mutable std::mutex mutex_;
    std::string text_;
};

} // namespace sieve::fleet::test
