// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Measures what replies cost: a packet that is dropped, passes as an answer, is not dropped at all, or
// leaves; beside an LRU hash map and the kernel's connection tracking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/bench/setup/summary.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

struct ReplyOptions {
    std::uint64_t flows = 100'000;
    std::uint32_t rounds = 15;
    double milliseconds = 60; // how long one measurement lasts
};

// What happens to the packets of a row.
enum class ReplyTraffic {
    dropped, // no flow: dropped
    answers, // of a flow: passes
    passed,  // passes by default, whatever flows there are
    goes_on, // leaves, of a flow that was noted in this unit of time
    renews,  // leaves, of a flow that was not: the first packet in 4.3 s
    begins,  // leaves, and begins a flow
};
[[nodiscard]] const char* reply_traffic_name(ReplyTraffic traffic);

struct ReplyRow {
    std::string program;
    ReplyTraffic traffic = ReplyTraffic::dropped;
    std::size_t base = 0;       // the row that does the same without asking or noting: its number
    std::optional<double> goal; // nanoseconds more than the base
    Rounds nanoseconds;         // a packet, the giving of its address included
};

struct ReplyTable {
    std::uint64_t flows = 0;
    std::uint64_t memory_bytes = 0; // of the flow memory
    std::uint64_t lru_bytes = 0;    // of the LRU hash map
    std::vector<ReplyRow> rows;
    std::vector<std::string> skipped; // what was left out, and why

    // What asking or noting costs, round by round.
    [[nodiscard]] Rounds more(const ReplyRow& row) const;
};

// Every address has one flow of TCP. Each packet has the address of a random one, or of none.
Result<ReplyTable> bench_replies(const ReplyOptions& options, const Progress& progress);

} // namespace sieve::bench
