// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Ctrl-C and SIGTERM for commands that run until they are told to end, and then must clean up.
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

namespace sieve::cli {

inline volatile std::sig_atomic_t interrupted = 0;

// From now on, a signal sets `interrupted` instead of ending the process, and system calls return early.
inline void watch_for_interrupt() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

// Sleeps for that many seconds, or less if `interrupted` is set meanwhile.
inline void sleep_for(double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    while (interrupted == 0 && Clock::now() < until)
        std::this_thread::sleep_for(
            std::min<std::chrono::duration<double>>(until - Clock::now(), std::chrono::milliseconds(100)));
}

} // namespace sieve::cli
