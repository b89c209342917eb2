// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Measures lookups in lists of prefixes: the exact kind `ranges`, a prefix set of the standard kind, and the
// kernel's LPM trie.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/bench/setup/summary.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

struct PrefixOptions {
    // "table:NUMBER" or "table6:NUMBER" for so many prefixes of routing_table.hpp, else a list's file, of one
    // family.
    std::string workload;
    std::uint32_t rounds = 15;
    double milliseconds = 3; // how long one measurement lasts
};

struct PrefixRow {
    std::string name;
    std::uint64_t bytes = 0; // that the kernel holds for it; the trie's by the growth of the kernel's memory
    std::optional<double> build; // seconds from ranges to image
    std::optional<double> load;  // seconds from image, or from prefixes, to a map in the kernel
    std::optional<double> fpr;   // expected
    // Nanoseconds a lookup, by traffic (non-members, members) and spacing.
    std::array<std::array<Rounds, spacings>, 2> times;
    std::array<double, 2> found{}; // share of lookups that answered yes
};

struct PrefixTable {
    std::string workload;
    std::uint64_t prefixes = 0;
    std::uint64_t ranges = 0; // after merging
    PrefixRow base;           // takes a question and answers nothing
    std::vector<PrefixRow> rows;
    std::vector<std::string> skipped; // what was left out, and why

    // Nanoseconds a lookup without the cost of the question.
    [[nodiscard]] Rounds net(const PrefixRow& row, Traffic traffic, Spacing spacing) const;
};

// Non-members are random addresses: of IPv4 anywhere, of IPv6 in the /24 of a member, where packets come
// from.
Result<PrefixTable> bench_prefixes(const PrefixOptions& options, const Progress& progress);

} // namespace sieve::bench
