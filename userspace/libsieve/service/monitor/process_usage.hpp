// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What this process costs, as Linux counts it.
#pragma once

#include <chrono>
#include <cstdint>

namespace sieve::service::watching {

// Zero for whatever cannot be read.
struct ProcessUsage {
    double cpu_seconds = 0;
    double started = 0; // seconds since 1970
    std::uint64_t resident_bytes = 0;
    std::uint64_t virtual_bytes = 0;
    std::uint64_t open_files = 0;
    std::uint64_t most_files = 0; // RLIMIT_NOFILE
    std::uint64_t threads = 0;
    double children_cpu_seconds = 0;                // of children that have ended, with theirs
    std::uint64_t children_most_resident_bytes = 0; // of the largest of them
};

[[nodiscard]] ProcessUsage read_process_usage();

// How long ago this process was started, loading of its libraries included, to a hundredth of a second. Zero
// if that cannot be read.
[[nodiscard]] std::chrono::milliseconds time_since_start();

// What all threads of this process have spent on processors, without its children.
[[nodiscard]] std::chrono::duration<double, std::milli> processor_time();

} // namespace sieve::service::watching
