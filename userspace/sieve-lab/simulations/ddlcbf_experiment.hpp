// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The experiment of section III-C of the d-left paper (Allerton 2006): how good a counting filter is after
// many deletions and insertions. Here a bucket may have any size, not only that of a machine word.
#pragma once

#include <cstdint>
#include <vector>

#include "libsieve/filters/kinds/ddlcbf/ddlcbf_bucket.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

struct CountingExperiment {
    CountingShape shape;
    std::uint32_t subtables = 4;
    std::uint32_t buckets = 2048;         // in each subtable
    std::uint64_t keys = 49152;           // inserted first
    std::uint64_t exchanges = 1ULL << 20; // then: delete a random key, insert a fresh one
    std::uint64_t seed = 1;
    std::uint64_t queries = 0; // non-members looked up at the end; 0: only the exact rate
};

struct CountingOutcome {
    double rate = 0;                   // exact, over random non-members
    std::uint64_t false_positives = 0; // of the queries
    std::uint64_t refused = 0;         // insertions that found their bucket full
    std::uint64_t lost = 0;            // present keys that a lookup did not find, at the end
    std::vector<std::uint64_t> loads;  // buckets by cells in use
    std::vector<std::uint64_t> maxima; // buckets by cells ever in use at once
};

// The three filters of the paper, 120 bits of remainders a bucket and counters of one bit.
//
// The paper does not say how long the minimal remainder of the dynamic filters is, and it matters: keys that
// agree in bucket and minimal remainder have no choice of buckets, so that short ones fill some buckets
// higher. Exact rates after the experiment, by its length in bits (standard error 3e-6):
//
//     minimal remainder      9        10        11        12        13     published
//     one length         8.0e-4    5.8e-4    4.6e-4    3.8e-4    3.4e-4     4.729e-4
//     two lengths        4.3e-4    3.6e-4    3.3e-4    3.1e-4    2.9e-4     3.111e-4
//
// 11 bits, as many as a bucket's number has, come closest to both, and leave more than half of the buckets at
// a maximum of seven, as the paper reports. Longer ones are better, but at 13 bits single insertions are
// refused.
//
// Eight cells of a 14-bit remainder and a counter;
CountingShape paper_dlcbf();
// semi-sorted, the length by the highest load that the bucket has seen;
CountingShape paper_ddlcbf();
// two lengths at most, no semi-sorting (section III-B).
CountingShape paper_two_sizes();

// One trial. Errors: a shape that does not exist.
Result<CountingOutcome> run_counting_experiment(const CountingExperiment& experiment);

} // namespace sieve
