// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Asks filters of every kind for members, inside the kernel, as often as wanted: none may be missed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

struct MemberOptions {
    std::uint64_t keys = 1'000'000;
    double bits_per_key = 16;
    std::uint64_t lookups = 100'000'000; // for each kind
};

struct MemberRow {
    std::string kind;
    std::uint64_t asked = 0;
    std::uint64_t missed = 0;
    double seconds = 0;
};

struct MemberTable {
    std::uint64_t keys = 0;
    std::vector<MemberRow> rows;
};

// Builds one filter of each kind with its standard choices and asks it for random members in the packet
// path's own code. Misses are counted, not refused.
Result<MemberTable> bench_members(const MemberOptions& options, const Progress& progress);

} // namespace sieve::bench
