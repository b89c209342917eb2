// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Asks exact sets of single addresses for as many addresses as wanted, up to all, in user space and inside
// the kernel: no answer may be wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

inline constexpr std::uint64_t all_addresses = std::uint64_t{1} << 32;

struct AnswerOptions {
    std::uint64_t keys = 1'000'000;
    std::uint64_t addresses = all_addresses;
};

struct AnswerRow {
    std::string kind;
    bool kernel = false; // else user space
    std::uint64_t asked = 0;
    std::uint64_t wrong = 0;
    double seconds = 0;
};

struct AnswerTable {
    std::uint64_t keys = 0;
    std::vector<AnswerRow> rows;
};

// Builds one set of each kind that lists its addresses and asks it once for each of the addresses
// bench_address(0), bench_address(1), ... Those below `keys` are its members, so the truth needs no list.
// Wrong answers are counted, not refused.
Result<AnswerTable> bench_answers(const AnswerOptions& options, const Progress& progress);

} // namespace sieve::bench
