// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Decides which eighths of a line's keys another line keeps (sieve/xorsat.h).
#pragma once

#include <cstdint>

#include <sieve/xorsat.h>

#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/parallel/progress.hpp"

namespace sieve {

// The number of keys in each eighth of each line, at [line * SIEVE_XORSAT_EIGHTHS + eighth].
using XorsatCounts = HugeArray<std::uint16_t>;

struct XorsatExports {
    HugeArray<std::uint8_t> of_line;  // a line's byte 1
    HugeArray<std::uint32_t> loads;   // keys that a line keeps
    HugeArray<std::uint16_t> eighths; // eighths that a line keeps
};

// Starts with no exports. Each sweep looks at every eighth, and takes it to that of its two lines that gives
// the lower sum of false positive rates, by the mean rate of a line of so many keys
// (analysis::xorsat::rate_of_line). An export must gain something, because it costs the packets of its eighth
// a second line: much in the first sweep, less from sweep to sweep. More than ten sweeps gain next to
// nothing.
//
// Runs in parallel, within the caller's limit of threads. The result depends on the counts and the number of
// sweeps only.
XorsatExports choose_exports(const sieve_lookup& lookup, const XorsatCounts& counts, std::uint32_t sweeps,
                             const Progress& progress = {});

} // namespace sieve
