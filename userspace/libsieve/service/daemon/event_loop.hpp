// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// sd-event with owners: what a callback waits for ends with its EventSource.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <systemd/sd-event.h>

#include "libsieve/util/results/result.hpp"

namespace sieve::service {

class EventSource {
  public:
    EventSource() = default;
    EventSource(EventSource&& other) noexcept = default;
    EventSource& operator=(EventSource&& other) noexcept = default;
    EventSource(const EventSource&) = delete;
    EventSource& operator=(const EventSource&) = delete;
    ~EventSource() = default;

    explicit operator bool() const { return source_ != nullptr; }

    // Of a timer: calls back once, at that time; a time that has passed means at once.
    void set(std::chrono::steady_clock::time_point when);
    // Of a timer: calls back no more.
    void unset();

  private:
    friend class EventLoop;
    struct Unref {
        void operator()(sd_event_source* source) const { ::sd_event_source_disable_unref(source); }
    };
    // The callback has to stay where it is, and to outlive the source.
    std::unique_ptr<std::function<void()>> call_;
    std::unique_ptr<sd_event_source, Unref> source_;
};

// The loop of one thread. Callbacks must not throw.
class EventLoop {
  public:
    [[nodiscard]] static Result<EventLoop> make();

    [[nodiscard]] Result<EventSource> on_readable(int fd, std::function<void()> call);
    // The signal must be blocked in every thread.
    [[nodiscard]] Result<EventSource> on_signal(int signal, std::function<void()> call);
    [[nodiscard]] Result<EventSource> timer(std::function<void()> call);

    // Tells the service manager's watchdog, if it has one, that the loop is alive.
    void answer_watchdog();

    // Until leave().
    [[nodiscard]] Status run();
    void leave();
    // One round, for tests: waits for an event up to `patience`. False: none came.
    [[nodiscard]] bool run_once(std::chrono::milliseconds patience);

  private:
    struct Unref {
        void operator()(sd_event* event) const { ::sd_event_unref(event); }
    };
    explicit EventLoop(sd_event* event) : event_(event) {}
    // Through that function of sd-event's.
    [[nodiscard]] static Result<EventSource>
    add(const char* function, std::function<void()> call,
        const std::function<int(sd_event_source** source, void* call)>& add_to_loop);

    std::unique_ptr<sd_event, Unref> event_;
};

} // namespace sieve::service
