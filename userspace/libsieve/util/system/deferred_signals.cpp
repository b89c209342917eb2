// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/deferred_signals.hpp"

#include <pthread.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <mutex>

namespace sieve {

namespace {

constexpr std::array<int, 5> signals{SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGXFSZ};

volatile std::sig_atomic_t arrived = 0;

// The dispositions belong to the process: the first object changes them, and the last one restores them. If
// each object restored what it found, one of two threads would restore the other's handler for good.
std::mutex mutex;
std::size_t objects = 0;
std::array<struct sigaction, signals.size()> before{};
thread_local std::size_t own_objects = 0; // of this thread

void restore() {
    for (std::size_t i = 0; i < signals.size(); i++) ::sigaction(signals[i], &before[i], nullptr);
}

// A child of fork(2) has no other thread whose object could end.
void in_child() {
    if (objects > 0 && own_objects == 0) restore();
    objects = own_objects;
    mutex.unlock();
}

[[maybe_unused]] const int registered =
    ::pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, in_child);

} // namespace

DeferredSignals::DeferredSignals() {
    const std::lock_guard lock(mutex);
    own_objects++;
    if (objects++ > 0) return;
    arrived = 0;
    struct sigaction deferred {};
    deferred.sa_handler = [](int signal) { arrived = signal; }; // no SA_RESTART: system calls return early
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    for (std::size_t i = 0; i < signals.size(); i++) {
        ::sigaction(signals[i], nullptr, &before[i]);
        if (before[i].sa_handler == SIG_DFL)
            ::sigaction(signals[i], signals[i] == SIGXFSZ ? &ignored : &deferred, nullptr);
    }
}

DeferredSignals::~DeferredSignals() {
    const std::lock_guard lock(mutex);
    own_objects--;
    if (--objects > 0) return;
    restore();
    if (const int signal = arrived; signal != 0) ::raise(signal); // NOLINT(cert-err33-c)
}

bool DeferredSignals::pending() const {
    return arrived != 0;
}

} // namespace sieve
