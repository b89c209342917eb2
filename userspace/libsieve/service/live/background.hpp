// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Work on another thread that wakes whoever waits for its end, so that nobody has to ask whether it has come.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <utility>

namespace sieve::service::live {

template <class Value>
class Background {
  public:
    // `ended` is called on the other thread when a result is there; null: nobody wants to know.
    explicit Background(std::function<void()> ended) : ended_(std::move(ended)) {}

    // Nothing is at work.
    template <class Work>
    void begin(Work work) {
        has_ended_ = false;
        result_ = std::async(std::launch::async, [this, work = std::move(work)]() mutable -> Value {
            struct End {
                Background& of;
                ~End() {
                    of.has_ended_ = true;
                    if (of.ended_) of.ended_();
                }
            } const end{*this};
            return work();
        });
    }
    [[nodiscard]] bool is_at_work() const { return result_.valid(); } // until its result is taken
    // Once, when it has ended. Throws what the work has thrown.
    [[nodiscard]] std::optional<Value> result() {
        if (!is_at_work() || !has_ended_) return std::nullopt;
        return result_.get();
    }

  private:
    std::function<void()> ended_;
    std::atomic<bool> has_ended_ = false;
    std::future<Value> result_; // ends first, and waits for the thread
};

} // namespace sieve::service::live
