// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/backoff.hpp"

#include <algorithm>

namespace sieve::service {

namespace {

std::chrono::milliseconds scaled(std::chrono::milliseconds time, double factor) {
    return std::chrono::milliseconds{
        static_cast<std::chrono::milliseconds::rep>(static_cast<double>(time.count()) * factor)};
}

} // namespace

std::chrono::milliseconds backoff_delay(unsigned failures, double chance,
                                        std::optional<std::chrono::seconds> retry_after,
                                        const BackoffLimits& limits) {
    std::chrono::milliseconds wait = limits.first;
    for (unsigned i = 1; i < failures && wait < limits.most; i++) wait *= 2;
    const std::chrono::milliseconds drawn = scaled(std::min(wait, limits.most), (1 + chance) / 2);
    if (!retry_after) return drawn;
    // Compared in seconds first: a server's number may not fit in milliseconds.
    const auto most_seconds = std::chrono::ceil<std::chrono::seconds>(limits.most_asked_for);
    const std::chrono::milliseconds asked =
        std::min<std::chrono::milliseconds>(std::clamp(*retry_after, std::chrono::seconds{0}, most_seconds),
                                            scaled(limits.most_asked_for, 0.9)); // jitter comes on top
    return std::max(drawn, scaled(asked, 1 + chance / 10));
}

std::chrono::milliseconds jittered(std::chrono::milliseconds interval, double chance, double share) {
    return scaled(interval, 1 - share + 2 * share * chance);
}

} // namespace sieve::service
