// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/parallel/parallel.hpp"

#include <pthread.h>

#include <atomic>
#include <vector>

#include "libsieve/util/parallel/task_pool.hpp"

#ifdef SIEVE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace sieve {

namespace {

// An order between threads that the pool establishes: what happened before signal() is visible after wait().
// The pool does the waiting; this class only tells ThreadSanitizer. Without ThreadSanitizer it does nothing.
class Order {
  public:
#ifdef SIEVE_THREAD_SANITIZER
    void signal() {
        __tsan_release(this);
    }
    void wait() {
        __tsan_acquire(this);
    }

  private:
    [[maybe_unused]] char address_ = 0;
#else
    void signal() {}
    void wait() {}
#endif
};

// A parallel call as its caller sees it. Bodies use only what was made before.
class Call {
  public:
    Call(Order& begin, Order& end) : end_(end) { begin.signal(); }
    ~Call() { end_.wait(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

  private:
    Order& end_;
};

// One body of a parallel call: it comes after the beginning of the call and before its end, whether or not it
// throws.
class Body {
  public:
    Body(Order& begin, Order& end) : end_(end) { begin.wait(); }
    ~Body() { end_.signal(); }
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;

  private:
    Order& end_;
};

// The bodies of one for_each_index().
class Loop {
  public:
    explicit Loop(const std::function<void(std::size_t)>& body) : body_(body) {}

    Order begin, end;

    void run(std::size_t index) {
        const Body scope(begin, end);
        body_(index);
    }

  private:
    const std::function<void(std::size_t)>& body_;
};

// The stages of one run_in_order(), with the order between them.
class Line {
  public:
    Line(std::size_t slots, const Stages& stages)
        : stages_(stages), filled_(slots), worked_(slots), taken_(slots) {}

    Order begin, end;

    bool fill(std::size_t& slot) {
        const Body scope(begin, end);
        after_fill_.wait();
        slot = turn_++ % filled_.size();
        taken_[slot].wait();
        const bool more = !stop_ && stages_.fill(slot);
        filled_[slot].signal();
        after_fill_.signal();
        return more;
    }
    void work(std::size_t slot) {
        const Body scope(begin, end);
        filled_[slot].wait();
        if (!stop_) stages_.work(slot);
        worked_[slot].signal();
    }
    void take(std::size_t slot) {
        const Body scope(begin, end);
        after_take_.wait();
        worked_[slot].wait();
        if (!stop_ && !stages_.take(slot)) stop_ = true;
        taken_[slot].signal();
        after_take_.signal();
    }

  private:
    const Stages& stages_;
    // Items leave in the order in which they came, and no more are under way than there are slots. So a slot
    // is free again by the time its turn comes.
    std::size_t turn_ = 0;
    std::atomic<bool> stop_ = false;
    std::vector<Order> filled_, worked_, taken_; // by slot: from one stage to the next, and back to the first
    Order after_fill_, after_take_;              // from one call of a stage to its next
};

std::atomic<bool> pool_is_used = false;
std::atomic<bool> pool_is_lost = false;

// Registered when the library is loaded: a child of a thread that registers it now would wait for that.
// Without memory for the registration, children are as badly off as without it.
[[maybe_unused]] const int registered =
    ::pthread_atfork(nullptr, nullptr, [] { pool_is_lost = pool_is_used.load(); });

Line& line_of(void* context) {
    return *static_cast<Line*>(context);
}

} // namespace

struct ThreadLimit::Control {
    std::unique_ptr<task_pool::Limit, task_pool::EndLimit> limit;
};

bool take_pool() {
    if (pool_is_lost) return false;
    // Before the pool takes its first lock: whoever forks meanwhile has a child that knows.
    pool_is_used = true;
    return true;
}

ThreadLimit::ThreadLimit(std::size_t threads) : control_(std::make_unique<Control>()) {
    if (take_pool()) control_->limit = task_pool::limit_threads(threads);
}

ThreadLimit::~ThreadLimit() = default;

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& body) {
    if (!take_pool()) {
        for (std::size_t i = 0; i < count; i++) body(i);
        return;
    }
    Loop loop(body);
    const Call call(loop.begin, loop.end);
    task_pool::for_each(
        count, [](void* context, std::size_t index) { static_cast<Loop*>(context)->run(index); }, &loop);
}

void run_in_order(std::size_t threads, std::size_t slots, const Stages& stages) {
    if (threads == 1 || !take_pool()) {
        while (stages.fill(0)) {
            stages.work(0);
            if (!stages.take(0)) return;
        }
        return;
    }
    Line line(slots, stages);
    // More threads than cores are rarely wise, but a caller that asks for them gets them.
    const ThreadLimit limit(threads);
    const Call call(line.begin, line.end);
    task_pool::run(threads, slots,
                   {.first = [](void* context, std::size_t& slot) { return line_of(context).fill(slot); },
                    .middle = [](void* context, std::size_t slot) { line_of(context).work(slot); },
                    .last = [](void* context, std::size_t slot) { line_of(context).take(slot); }},
                   &line);
}

} // namespace sieve
