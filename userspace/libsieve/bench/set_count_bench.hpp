// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Measures what a packet costs in tables of one to sixteen sets: each set asked by its own filter, and all of
// them by one lookup in a joint filter.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/bench/setup/summary.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

struct SetCountOptions {
    std::uint64_t keys = 1'000'000; // of all sets together, so that all tables hold the same keys
    double bits_per_key = 16;
    std::vector<std::uint32_t> sets = {1, 2, 4, 8, 16};
    std::uint32_t rounds = 15;
    double milliseconds = 60; // how long one measurement lasts
};

struct SetCountRow {
    std::uint32_t sets = 0; // 0: the table has none
    bool joined = false;
    bool exact = false; // of kind exact, and joined by a table; else of kind xorsat, and joined by a filter
    std::uint64_t bytes = 0; // of the filters that the packets ask
    double build = 0;        // seconds from keys to filters; joined: of the joint filter alone
    double fpr = 0;          // expected, of all sets together
    // Nanoseconds per packet, from parsing to the verdict.
    std::array<Rounds, traffics> times;
};

struct SetCountTable {
    std::uint64_t keys = 0;
    double bits_per_key = 0;
    std::vector<SetCountRow> rows; // first the table without sets

    // What the sets cost: nanoseconds per packet, less those without sets.
    [[nodiscard]] Rounds net(const SetCountRow& row, Traffic traffic) const;
    // The same as a multiple of the first table of one set of that kind.
    [[nodiscard]] Rounds to_one(const SetCountRow& row, Traffic traffic) const;
};

// Each number of sets is measured twice: with sets of kind exact, as addresses get them, and with sets of
// kind xorsat, as the joint filter of other keys is, with as many bits a key. Packets are IPv4, at XDP,
// inside the kernel. Every set drops, and members are spread evenly over the sets.
Result<SetCountTable> bench_set_counts(const SetCountOptions& options, const Progress& progress);

} // namespace sieve::bench
