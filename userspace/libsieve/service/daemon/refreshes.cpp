// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/refreshes.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "libsieve/service/daemon/broken_off.hpp"
#include "libsieve/service/sandbox/child_role.hpp"
#include "libsieve/util/system/event.hpp"

namespace sieve::service {

struct Refreshes::Job {
    Done done;
    UniqueFd cancel;
    SandboxSettings sandbox;
};

struct Refreshes::Thread {
    std::shared_ptr<Job> job; // null: it is free
    std::unique_ptr<Worker> worker;
    EventSource ended;
};

Refreshes::Refreshes(EventLoop& loop, control::Kernel& kernel, const StateDirectory& state,
                     HostAddresses& host, Log& log, std::function<void(Done done)> done)
    : loop_(loop), kernel_(kernel), state_(state), host_(host), log_(log), done_(std::move(done)) {}

Refreshes::~Refreshes() {
    call_off();
}

RefreshRoom Refreshes::room() const {
    const auto fewer_than = [this](std::size_t most, const auto& is) {
        const auto count = std::ranges::count_if(threads_, [&](const std::unique_ptr<Thread>& thread) {
            return thread->job && is(thread->job->done.refresh);
        });
        return static_cast<std::size_t>(count) < most;
    };
    RefreshRoom room;
    room.far = fewer_than(most_far, [](const Refresh& one) { return one.far; });
    room.failing =
        room.far && fewer_than(most_failing, [](const Refresh& one) { return one.far && one.failing; });
    room.near = fewer_than(most_near, [](const Refresh& one) { return !one.far && !one.is_long; });
    room.near_long = fewer_than(most_long, [](const Refresh& one) { return !one.far && one.is_long; });
    return room;
}

std::size_t Refreshes::at_work() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        threads_, [](const std::unique_ptr<Thread>& thread) { return thread->job != nullptr; }));
}

Status Refreshes::begin(const std::shared_ptr<const Configuration>& configuration, const Refresh& refresh,
                        const SandboxSettings& sandbox) {
    auto free =
        std::ranges::find_if(threads_, [](const std::unique_ptr<Thread>& thread) { return !thread->job; });
    if (free == threads_.end()) {
        auto thread = std::make_unique<Thread>();
        SIEVE_ASSIGN(thread->worker, Worker::start(Priority::low));
        SIEVE_ASSIGN(thread->ended,
                     loop_.on_readable(thread->worker->ended(), [this, mine = thread.get()] { end(*mine); }));
        threads_.push_back(std::move(thread));
        free = std::prev(threads_.end());
    }
    SIEVE_ASSIGN(UniqueFd cancel, make_event());
    auto job = std::make_shared<Job>(
        Job{{.refresh = refresh, .configuration = configuration}, std::move(cancel), sandbox});
    job->sandbox.cancel = job->cancel.get();
    job->sandbox.run = [&room = refresh.is_long ? for_long_ : for_others_,
                        run = sandbox.run](const ChildOrder& order) {
        if (order.role == ChildRole::fetch || order.role == ChildRole::command) return run(order);
        room.acquire();
        struct Release {
            std::counting_semaphore<most_children>& room;
            ~Release() { room.release(); }
        } const release{room};
        return run(order);
    };
    (*free)->job = job;
    (*free)->worker->run([this, job] {
        control::Observer observer;
        observer.remark = [this](const std::string& text) { log_.info(text); };
        Done& done = job->done;
        try {
            done.surveys = refresh_sets(kernel_, *done.configuration, done.refresh.sets, state_, host_,
                                        job->sandbox, observer, done.refresh.files_only);
        } catch (const std::exception& error) {
            log_.error(fmt::format("set {}: the refresh broke off: {}", fmt::join(done.refresh.sets, ", "),
                                   why_broken_off(error)));
        }
    });
    return {};
}

void Refreshes::end(Thread& thread) {
    thread.worker->acknowledge();
    if (const std::shared_ptr<Job> job = std::exchange(thread.job, nullptr)) done_(std::move(job->done));
}

void Refreshes::call_off() {
    for (const std::unique_ptr<Thread>& thread : threads_) {
        if (!thread->job) continue;
        thread->job->done.called_off = true;
        set_event(thread->job->cancel.get());
    }
}

} // namespace sieve::service
