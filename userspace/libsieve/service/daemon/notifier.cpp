// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/notifier.hpp"

#include <ctime>

#include <fmt/core.h>
#include <systemd/sd-daemon.h>

namespace sieve::service {

void SystemdNotifier::send(const std::string& lines) {
    ::sd_notify(0, lines.c_str());
}

std::string reloading_lines() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return fmt::format("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1'000'000LL + now.tv_nsec / 1000);
}

} // namespace sieve::service
