// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The clock by which the program judges deadlines.
#pragma once

#include <cstdint>
#include <string_view>

namespace sieve {

// What bpf_ktime_get_coarse_ns() tells a program: nanoseconds of CLOCK_MONOTONIC_COARSE since the machine
// started, without suspended time. Not what clock_gettime(2) tells a process in a time namespace.
[[nodiscard]] std::uint64_t program_now();

// The offset of CLOCK_MONOTONIC in nanoseconds, from the text of /proc/self/timens_offsets; 0 if the text has
// none. See time_namespaces(7).
[[nodiscard]] std::int64_t monotonic_offset(std::string_view timens_offsets);

} // namespace sieve
