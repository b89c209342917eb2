// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Work on several threads. All of libsieve's parallel work goes through these calls, so oneTBB is used in one
// place.
//
// What happened before a call is visible to every body that the call runs, and what a body did is visible
// after the call. Two bodies of one call are not ordered. ThreadSanitizer knows these rules (parallel.cpp
// tells it), so that it reports two bodies that touch the same data.
//
// A child of fork(2) has a copy of the pool without the pool's threads, and with the pool's locks as other
// threads of its parent held them. So where the parent has used the pool, its child works on one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIEVE_THREAD_SANITIZER 1
#endif
#endif

namespace sieve {

/// False in a child of fork(2) whose parent has used the pool. If true, the caller is about to use it.
[[nodiscard]] bool take_pool();

/// While a ThreadLimit lives, parallel work of this process runs on at most `threads` threads, 0 meaning one
/// for each processor. If several limits exist, the smallest holds.
class ThreadLimit {
  public:
    explicit ThreadLimit(std::size_t threads);
    ~ThreadLimit();
    ThreadLimit(const ThreadLimit&) = delete;
    ThreadLimit& operator=(const ThreadLimit&) = delete;

  private:
    struct Control;
    std::unique_ptr<Control> control_;
};

/// Calls body(0) to body(count - 1), each once, in any order and at the same time. Returns when all calls
/// have returned. If a body throws, some bodies may not run, and the call throws the same exception.
void for_each_index(std::size_t count, const std::function<void(std::size_t)>& body);

/// The stages of run_in_order. A slot is a number below `slots`; it stands for the caller's data of one item.
struct Stages {
    std::function<bool(std::size_t slot)> fill; ///< takes the next item; false if there is none
    std::function<void(std::size_t slot)> work; ///< works on one item, at the same time as others
    std::function<bool(std::size_t slot)> take; ///< takes the result; false if no more items are wanted
};

/// Passes items through the stages on `threads` threads, at least 1, with at most `slots` items under way at
/// a time. `fill` and `take` are called for one item at a time, in the same order. When `take` returns false,
/// `fill` and `take` are not called again. An exception of a stage ends the work; the call throws the same
/// exception.
void run_in_order(std::size_t threads, std::size_t slots, const Stages& stages);

} // namespace sieve
