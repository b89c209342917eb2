// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A log and a service manager that remember what they are told.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "libsieve/service/daemon/notifier.hpp"
#include "libsieve/service/monitor/log.hpp"

namespace sieve::test {

struct Line {
    service::LogLevel level{};
    std::string sentence;
    service::LogFields fields;
};

class RecordedLog final : public service::Log {
  public:
    void write(service::LogLevel level, const std::string& sentence,
               const service::LogFields& fields) override {
        const std::lock_guard lock(mutex_);
        lines_.push_back({level, sentence, fields});
    }
    [[nodiscard]] std::vector<Line> lines() const {
        const std::lock_guard lock(mutex_);
        return lines_;
    }
    [[nodiscard]] std::size_t count(const std::string& part) const {
        const std::vector<Line> all = lines();
        return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const Line& line) {
            return line.sentence.find(part) != std::string::npos;
        }));
    }
    [[nodiscard]] bool says(const std::string& part) const { return count(part) > 0; }
    [[nodiscard]] std::string text() const {
        std::string text;
        for (const Line& line : lines()) text += line.sentence + "\n";
        return text;
    }
    void forget() {
        const std::lock_guard lock(mutex_);
        lines_.clear();
    }

  private:
    mutable std::mutex mutex_;
    std::vector<Line> lines_;
};

class RecordedNotifier final : public service::Notifier {
  public:
    std::vector<std::string> sent;
    void send(const std::string& lines) override { sent.push_back(lines); }
    [[nodiscard]] std::size_t count(const std::string& part) const {
        return static_cast<std::size_t>(std::count_if(sent.begin(), sent.end(), [&](const std::string& one) {
            return one.find(part) != std::string::npos;
        }));
    }
};

} // namespace sieve::test
