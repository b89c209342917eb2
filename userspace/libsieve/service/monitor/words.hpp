// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Numbers, rates and times as the status page says them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "libsieve/service/monitor/statistics.hpp"

namespace sieve::service::watching {

[[nodiscard]] std::string whole_count(std::uint64_t count);                 // 1,234,567
[[nodiscard]] std::string short_count(double count);                        // 1.23 M
[[nodiscard]] std::string short_bytes(double bytes);                        // 1.9 MiB
[[nodiscard]] std::string one_in(double rate);                              // 1 in 25,641; never
[[nodiscard]] std::string percent(double share);                            // 12.3 %; < 0.01 %
[[nodiscard]] std::string span_text(Seconds span);                          // 12 s, 3 min, 5 h, 2 days
[[nodiscard]] std::string short_span(Seconds span);                         // 1.2 ms, 340 ms, 2.1 s, 3 min
[[nodiscard]] std::string ago(Clock::time_point at, Clock::time_point now); // 3 min ago; just now
[[nodiscard]] std::string utc_time(Clock::time_point at);                   // 2026-11-22 07:48:29 UTC

} // namespace sieve::service::watching
