// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_bucket.hpp"

#include <algorithm>
#include <cmath>

namespace sieve {

namespace {

std::uint64_t prefix(std::uint64_t remainder, std::uint32_t length) {
    return length == 0 ? 0 : remainder & (~std::uint64_t{0} << (64 - length));
}

} // namespace

std::uint32_t CountingShape::length(std::uint32_t maximum) const {
    const std::uint32_t cell = bits / maximum;
    return cell <= counter_bits ? 0 : std::min(64U, cell - counter_bits + sorted_bits);
}

std::uint32_t CountingShape::capacity() const {
    std::uint32_t cells = most_cells;
    while (cells > 0 && length(cells) < minimal) cells--;
    return cells;
}

bool CountingBucket::contains(std::uint64_t remainder) const {
    for (std::uint32_t i = 0; i < load_; i++)
        if (prefix(remainder, cells_[i].length) == cells_[i].remainder) return true;
    return false;
}

bool CountingBucket::has_minimal(std::uint64_t remainder, const CountingShape& shape) const {
    for (std::uint32_t i = 0; i < load_; i++)
        if ((remainder ^ cells_[i].remainder) >> (64 - shape.minimal) == 0) return true;
    return false;
}

void CountingBucket::shorten(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t i = 0; i < load_; i++) {
        Cell& cell = cells_[i];
        if (cell.length <= from || cell.length <= to) continue;
        cell.length = to;
        cell.remainder = prefix(cell.remainder, to);
    }
}

void CountingBucket::append(std::uint64_t remainder, std::uint32_t length) {
    cells_[load_++] = {prefix(remainder, length), length, 1};
}

bool CountingBucket::insert(std::uint64_t remainder, const CountingShape& shape) {
    for (std::uint32_t i = 0; i < load_; i++)
        if (prefix(remainder, cells_[i].length) == cells_[i].remainder &&
            cells_[i].keys < (1U << shape.counter_bits)) {
            cells_[i].keys++;
            return true;
        }
    if (shape.two_sizes) return insert_two_sizes(remainder, shape);
    const std::uint32_t maximum = std::max({maximum_, load_ + 1, shape.least_cells});
    if (load_ == maximum_ && maximum > shape.capacity()) return false;
    if (maximum > maximum_) shorten(0, shape.length(maximum));
    maximum_ = maximum;
    append(remainder, shape.length(maximum));
    return true;
}

// Section III-B: remainders do not grow, but a new remainder can use the bits that the others leave unused. A
// bucket may have at most two sizes of remainders. Of the ways to achieve this, the function takes the one
// with the lowest false positive rate.
bool CountingBucket::insert_two_sizes(std::uint64_t remainder, const CountingShape& shape) {
    if (load_ + 1 > shape.most_cells) return false;
    std::uint32_t shortest = 64;
    std::uint32_t longest = 0;
    for (std::uint32_t i = 0; i < load_; i++) {
        shortest = std::min(shortest, cells_[i].length);
        longest = std::max(longest, cells_[i].length);
    }
    const auto shorts = static_cast<std::uint32_t>(std::count_if(
        cells_.begin(), cells_.begin() + load_, [&](const Cell& c) { return c.length == shortest; }));

    // A way: remainders longer than `above` are cut to `cut` bits, and the new one gets `fresh` bits.
    struct Way {
        std::uint32_t above, cut, fresh;
    };
    const auto share = [&shape](std::uint32_t used, std::uint32_t cells) -> std::uint32_t {
        const std::uint32_t cell = used > shape.bits ? 0 : (shape.bits - used) / cells;
        return cell <= shape.counter_bits ? 0 : std::min(64U, cell - shape.counter_bits);
    };
    const std::uint32_t even = share(0, load_ + 1);
    std::array<Way, 3> ways{{{0, even, even}, {}, {}}}; // all of the same length
    std::uint32_t many = 1;
    if (load_ > 0) {
        const std::uint32_t short_cell = shortest + shape.counter_bits;
        // The long remainders make room for the new one, which becomes as long as they are.
        const std::uint32_t long_ones = load_ - shorts;
        const std::uint32_t together =
            std::min(share(shorts * short_cell, long_ones + 1), long_ones == 0 ? 64 : longest);
        if (together >= shortest) ways[many++] = {shortest, together, together};
        // The long remainders become short; the new one gets all the remaining bits.
        const std::uint32_t alone = share(load_ * short_cell, 1);
        if (alone >= shortest) ways[many++] = {shortest, shortest, alone};
    }
    const Way* best = nullptr;
    double least = 0;
    for (std::uint32_t w = 0; w < many; w++) {
        double rate = std::ldexp(1.0, -static_cast<int>(ways[w].fresh));
        std::uint32_t lowest = ways[w].fresh;
        for (std::uint32_t i = 0; i < load_; i++) {
            std::uint32_t length = cells_[i].length;
            if (length > ways[w].above) length = std::min(length, ways[w].cut);
            lowest = std::min(lowest, length);
            rate += std::ldexp(1.0, -static_cast<int>(length));
        }
        if (lowest < shape.minimal || (best != nullptr && rate >= least)) continue;
        best = &ways[w];
        least = rate;
    }
    if (best == nullptr) return false;
    shorten(best->above, best->cut);
    append(remainder, best->fresh);
    maximum_ = std::max(maximum_, load_);
    return true;
}

bool CountingBucket::erase(std::uint64_t remainder) {
    std::uint32_t best = load_;
    for (std::uint32_t i = 0; i < load_; i++)
        if (prefix(remainder, cells_[i].length) == cells_[i].remainder &&
            (best == load_ || cells_[i].length > cells_[best].length))
            best = i;
    if (best == load_) return false;
    if (--cells_[best].keys == 0) cells_[best] = cells_[--load_];
    return true;
}

double CountingBucket::rate() const {
    double sum = 0;
    for (std::uint32_t i = 0; i < load_; i++) {
        // Skips a remainder that a shorter or equal one covers: it has been counted.
        bool covered = false;
        for (std::uint32_t j = 0; j < load_ && !covered; j++)
            covered = j != i && cells_[j].length <= cells_[i].length &&
                      prefix(cells_[i].remainder, cells_[j].length) == cells_[j].remainder &&
                      (cells_[j].length < cells_[i].length || j < i);
        if (!covered) sum += std::ldexp(1.0, -static_cast<int>(cells_[i].length));
    }
    return sum;
}

} // namespace sieve
