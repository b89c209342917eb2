// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A thread for work that takes long, so that the loop stays free to answer.
//
// It is one thread for as long as the object lives: children that are started from it end with the thread
// that started them (PR_SET_PDEATHSIG).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {

enum class Priority : std::uint8_t {
    normal,
    low, // takes what others leave of processor and disk; the children it starts do so, too
};

class Worker {
  public:
    // Signals are blocked in the thread. Error: no thread, or no descriptor.
    [[nodiscard]] static Result<std::unique_ptr<Worker>> start(Priority priority);
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker(); // waits for the job

    // Runs the job, which must not throw. There is none at work.
    void run(std::function<void()> job);
    // Becomes readable when a job has ended.
    [[nodiscard]] int ended() const { return ended_.get(); }
    // Makes ended() unreadable again.
    void acknowledge();

  private:
    explicit Worker(UniqueFd ended) : ended_(std::move(ended)) {}
    void work(Priority priority);

    UniqueFd ended_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> job_;
    bool over_ = false;
    std::thread thread_;
};

} // namespace sieve::service
