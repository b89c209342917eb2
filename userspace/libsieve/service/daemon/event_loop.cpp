// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/event_loop.hpp"

#include <sys/epoll.h>

#include <utility>

#include <fmt/core.h>

#include "libsieve/util/system/memory_reserve.hpp"

namespace sieve::service {

namespace {

using Call = std::function<void()>;

// Timers may be late by that much.
constexpr std::uint64_t accuracy = 1000; // in microseconds

// An exception would leave what it began half done, so it ends the daemon, and what is in force stays.
void call(void* what) noexcept {
    (*static_cast<Call*>(what))();
    keep_memory_in_reserve();
}

int take_io(sd_event_source*, int, std::uint32_t, void* what) {
    call(what);
    return 0;
}
int take_signal(sd_event_source*, const signalfd_siginfo*, void* what) {
    call(what);
    return 0;
}
int take_time(sd_event_source*, std::uint64_t, void* what) {
    call(what);
    return 0;
}

tl::unexpected<Error> no_loop(const char* what, int result) {
    return failure(ErrorKind::out_of_memory, fmt::format("event loop: {}: {}", what, errno_text(-result)));
}

} // namespace

void EventSource::set(std::chrono::steady_clock::time_point when) {
    const auto time = std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch());
    ::sd_event_source_set_time(source_.get(), static_cast<std::uint64_t>(time.count()));
    ::sd_event_source_set_enabled(source_.get(), SD_EVENT_ONESHOT);
}

void EventSource::unset() {
    ::sd_event_source_set_enabled(source_.get(), SD_EVENT_OFF);
}

Result<EventLoop> EventLoop::make() {
    sd_event* event = nullptr;
    if (const int result = ::sd_event_new(&event); result < 0) return no_loop("sd_event_new", result);
    keep_memory_in_reserve();
    return EventLoop(event);
}

Result<EventSource> EventLoop::on_readable(int fd, std::function<void()> call) {
    return add("sd_event_add_io", std::move(call), [&](sd_event_source** source, void* made) {
        return ::sd_event_add_io(event_.get(), source, fd, EPOLLIN, take_io, made);
    });
}

Result<EventSource> EventLoop::on_signal(int signal, std::function<void()> call) {
    return add("sd_event_add_signal", std::move(call), [&](sd_event_source** source, void* made) {
        return ::sd_event_add_signal(event_.get(), source, signal, take_signal, made);
    });
}

Result<EventSource> EventLoop::timer(std::function<void()> call) {
    SIEVE_ASSIGN(EventSource made,
                 add("sd_event_add_time", std::move(call), [&](sd_event_source** source, void* what) {
                     return ::sd_event_add_time(event_.get(), source, CLOCK_MONOTONIC, 0, accuracy, take_time,
                                                what);
                 }));
    made.unset();
    return made;
}

Result<EventSource>
EventLoop::add(const char* function, std::function<void()> call,
               const std::function<int(sd_event_source** source, void* call)>& add_to_loop) {
    EventSource made;
    made.call_ = std::make_unique<Call>(std::move(call));
    sd_event_source* source = nullptr;
    if (const int result = add_to_loop(&source, made.call_.get()); result < 0)
        return no_loop(function, result);
    made.source_.reset(source);
    return made;
}

void EventLoop::answer_watchdog() {
    ::sd_event_set_watchdog(event_.get(), 1);
}

Status EventLoop::run() {
    if (const int result = ::sd_event_loop(event_.get()); result < 0) return no_loop("sd_event_loop", result);
    return {};
}

void EventLoop::leave() {
    ::sd_event_exit(event_.get(), 0);
}

bool EventLoop::run_once(std::chrono::milliseconds patience) {
    const auto time = std::chrono::duration_cast<std::chrono::microseconds>(patience);
    return ::sd_event_run(event_.get(), static_cast<std::uint64_t>(time.count())) > 0;
}

} // namespace sieve::service
