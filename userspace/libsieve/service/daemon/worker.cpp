// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/worker.hpp"

#include "libsieve/util/system/event.hpp"

#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <system_error>
#include <utility>

namespace sieve::service {

namespace {

constexpr int low_nice = 10;
// As ioprio_set(2) has them; linux/ioprio.h is no C++.
constexpr int ioprio_who_process = 1;
constexpr int ioprio_lowest_best_effort = 2 << 13 | 7;

// Of this thread and of what it starts. Without these, the work is only less polite.
void lower_priority() {
    const sched_param none{};
    (void)::sched_setscheduler(0, SCHED_BATCH, &none);
    (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), low_nice);
    (void)::syscall(SYS_ioprio_set, ioprio_who_process, 0, ioprio_lowest_best_effort);
}

} // namespace

Result<std::unique_ptr<Worker>> Worker::start(Priority priority) {
    SIEVE_ASSIGN(UniqueFd ended, make_event());
    std::unique_ptr<Worker> worker(new Worker(std::move(ended)));
    try {
        worker->thread_ = std::thread([self = worker.get(), priority] { self->work(priority); });
    } catch (const std::system_error& error) {
        return failure(ErrorKind::out_of_memory, std::string("no thread: ") + error.what());
    }
    return worker;
}

Worker::~Worker() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void Worker::run(std::function<void()> job) {
    {
        const std::lock_guard lock(mutex_);
        job_ = std::move(job);
    }
    changed_.notify_all();
}

void Worker::acknowledge() {
    clear_event(ended_.get());
}

void Worker::work(Priority priority) {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    if (priority == Priority::low) lower_priority();
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return over_ || job_; });
        if (!job_) return;
        lock.unlock();
        job_();
        lock.lock();
        job_ = nullptr;
        set_event(ended_.get());
        // A cycle may have held lists of millions. What the allocator keeps of them goes back to the machine.
        lock.unlock();
        ::malloc_trim(0);
        lock.lock();
    }
}

} // namespace sieve::service
