// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/xorsat/xorsat_exports.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libsieve/analysis/xorsat.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {

namespace {

// What an exported eighth must gain in the end, in false positive rates of a line of mean load.
constexpr double price_of_export = 0.5;
// The first sweep asks 2^5 times as much, and later ones less and less, so that the eighths that gain most
// are exported first. If all sweeps asked the same, each line would export the first eighths that gain
// anything, and half as many more for the same rate.
constexpr std::uint32_t first_doublings = 5;

// Lines that one thread visits at a time. They send eighths to each other and to the lines of the next block.
constexpr std::uint32_t block = 1024;
static_assert(block >= SIEVE_XORSAT_REACH);

// Rates as integers, so that all processors decide alike.
constexpr double unit_of_rate = 0x1p48;

std::vector<std::int64_t> rates_by_load(std::uint32_t most) {
    std::vector<std::int64_t> rates(std::min<std::uint32_t>(most, 1024) + 1);
    for (std::size_t load = 0; load < rates.size(); load++)
        rates[load] = std::llround(analysis::xorsat::rate_of_line(static_cast<int>(load)) * unit_of_rate);
    return rates;
}

class Sweeper {
  public:
    Sweeper(const sieve_lookup& lookup, const XorsatCounts& counts, XorsatExports& exports)
        : lookup_(lookup), counts_(counts), exports_(exports) {
        std::uint64_t keys = 0;
        std::uint32_t most = 0;
        for (const std::uint32_t load : exports.loads) {
            keys += load;
            most = std::max(most, load);
        }
        rates_ = rates_by_load(2 * most + 1);
        const double mean = static_cast<double>(keys) / lookup.buckets;
        final_price_ =
            std::llround(price_of_export * static_cast<double>(rate(static_cast<std::uint32_t>(mean))));
    }

    // An export must gain the final price, doubled so often.
    void set_price(std::uint32_t doublings) { price_ = final_price_ << doublings; }

    void sweep(std::uint32_t begin, std::uint32_t end) {
        for (std::uint32_t line = begin; line < end; line++)
            for (std::uint32_t eighth = 0; eighth < SIEVE_XORSAT_EIGHTHS; eighth++) visit(line, eighth);
    }

  private:
    [[nodiscard]] std::int64_t rate(std::uint32_t load) const {
        return rates_[std::min<std::size_t>(load, rates_.size() - 1)];
    }

    void visit(std::uint32_t line, std::uint32_t eighth) {
        const std::uint32_t other = sieve_xorsat_other(&lookup_, line, eighth);
        if (other == line) return;
        const bool exported = (exports_.of_line[line] >> eighth & 1) != 0;
        const std::uint32_t from = exported ? other : line;
        const std::uint32_t to = exported ? line : other;
        const std::uint32_t keys = counts_[std::size_t{line} * SIEVE_XORSAT_EIGHTHS + eighth];
        std::uint32_t& from_load = exports_.loads[from];
        std::uint32_t& to_load = exports_.loads[to];
        const std::int64_t from_eighths = exports_.eighths[from];
        const std::int64_t to_eighths = exports_.eighths[to];
        const std::int64_t added = (from_eighths - 1) * rate(from_load - keys) -
                                   from_eighths * rate(from_load) + (to_eighths + 1) * rate(to_load + keys) -
                                   to_eighths * rate(to_load) + (exported ? -price_ : price_);
        if (added >= 0) return;
        from_load -= keys;
        to_load += keys;
        exports_.eighths[from]--;
        exports_.eighths[to]++;
        exports_.of_line[line] ^= static_cast<std::uint8_t>(1U << eighth);
    }

    const sieve_lookup& lookup_;
    const XorsatCounts& counts_;
    XorsatExports& exports_;
    std::vector<std::int64_t> rates_;
    std::int64_t final_price_ = 0;
    std::int64_t price_ = 0;
};

} // namespace

XorsatExports choose_exports(const sieve_lookup& lookup, const XorsatCounts& counts, std::uint32_t sweeps,
                             const Progress& progress) {
    const std::uint32_t lines = lookup.buckets;
    XorsatExports exports{.of_line = HugeArray<std::uint8_t>(lines),
                          .loads = HugeArray<std::uint32_t>(lines),
                          .eighths = HugeArray<std::uint16_t>(lines)};
    for (std::uint32_t line = 0; line < lines; line++) {
        exports.eighths[line] = SIEVE_XORSAT_EIGHTHS;
        for (std::uint32_t eighth = 0; eighth < SIEVE_XORSAT_EIGHTHS; eighth++)
            exports.loads[line] += counts[std::size_t{line} * SIEVE_XORSAT_EIGHTHS + eighth];
    }
    if (sweeps == 0) return exports;

    Sweeper sweeper(lookup, counts, exports);
    // The last block takes the rest of the lines, and sends eighths to the first.
    const std::uint32_t blocks = std::max(1U, lines / block);
    const auto visit = [&](std::uint32_t index) {
        sweeper.sweep(index * block, index + 1 == blocks ? lines : (index + 1) * block);
    };
    // Every second block at a time: no two of them touch the same line. If their number is odd, the last is
    // the first one's neighbour.
    const std::uint32_t pairs = blocks / 2;
    for (std::uint32_t sweep = 0; sweep < sweeps; sweep++) {
        if (progress) progress("rebalancing", static_cast<double>(sweep) / sweeps);
        const std::uint32_t later = sweeps - 1 - sweep;
        sweeper.set_price(later == 0 ? 0 : first_doublings * later / (sweeps - 1));
        for_each_index(pairs, [&](std::size_t i) { visit(static_cast<std::uint32_t>(2 * i)); });
        for_each_index(pairs, [&](std::size_t i) { visit(static_cast<std::uint32_t>(2 * i + 1)); });
        if (blocks % 2 != 0) visit(blocks - 1);
    }
    return exports;
}

} // namespace sieve
