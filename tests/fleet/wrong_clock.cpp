// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "fleet/wrong_clock.hpp"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {
std::atomic<time_t> off_by = 0;
} // namespace

// This program's own functions come before those of the C library, for all libraries that it uses.
extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* now) noexcept {
    const int status = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += off_by;
    return status;
}
extern "C" __attribute__((visibility("default"))) time_t time(time_t* into) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (into != nullptr) *into = now.tv_sec;
    return now.tv_sec;
}
extern "C" __attribute__((visibility("default"))) int gettimeofday(timeval* into, void*) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    *into = {now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

namespace sieve::fleet::test {

void WrongClock::set(std::chrono::seconds off) {
    off_by = off.count();
}

} // namespace sieve::fleet::test
