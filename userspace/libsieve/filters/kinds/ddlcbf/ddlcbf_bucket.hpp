// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A bucket of a d-left counting Bloom filter, decoded from its bits: defines what an insertion and a deletion
// do to it. Source: d-left paper (Allerton 2006), section III.
#pragma once

#include <array>
#include <cstdint>

namespace sieve {

// How a bucket spends its bits.
struct CountingShape {
    std::uint32_t bits = 57;        // for remainders and their counters
    std::uint32_t counter_bits = 1; // of each cell; a counter of k bits counts up to 2^k keys
    std::uint32_t sorted_bits = 1;  // leading bits that semi-sorting makes implicit: 0 or 1
    std::uint32_t minimal = 8;      // bits of the minimal remainder
    std::uint32_t least_cells = 0;  // a fixed number of cells from the start (dlCBF); 0: dynamic
    std::uint32_t most_cells = 7;
    bool two_sizes = false; // section III-B; not together with semi-sorting

    // Bits of every remainder, including the sorted bit, in a bucket that has held up to `maximum` cells.
    [[nodiscard]] std::uint32_t length(std::uint32_t maximum) const;
    // The most cells whose remainders are no shorter than the minimal one.
    [[nodiscard]] std::uint32_t capacity() const;
};

class CountingBucket {
  public:
    static constexpr std::uint32_t room = 16; // bound of most_cells

    struct Cell {
        std::uint64_t remainder = 0; // left-aligned, zero beyond its length
        std::uint32_t length = 0;
        std::uint32_t keys = 0; // number of keys that the cell represents, at least one
    };

    [[nodiscard]] std::uint32_t load() const { return load_; } // cells in use
    [[nodiscard]] std::uint32_t maximum() const { return maximum_; }
    [[nodiscard]] const Cell& cell(std::uint32_t index) const { return cells_[index]; }

    // Whether a lookup of this remainder (64 bits, left-aligned) finds it.
    [[nodiscard]] bool contains(std::uint64_t remainder) const;
    // Whether the bucket holds a key with the same minimal remainder. The new key must then go to this
    // bucket, too.
    [[nodiscard]] bool has_minimal(std::uint64_t remainder, const CountingShape& shape) const;

    // Adds a key. If a cell agrees in all its bits and its counter is not full, the cell counts the key.
    // Otherwise the key gets a new cell, and all other cells may have to shrink. Returns false, with the
    // bucket unchanged, if remainders would become shorter than the minimal one or no cell is left.
    [[nodiscard]] bool insert(std::uint64_t remainder, const CountingShape& shape);

    // Removes a key from the cell that agrees with it in the most bits. Returns false if there is none.
    [[nodiscard]] bool erase(std::uint64_t remainder);

    // The exact probability that a random remainder is in the bucket.
    [[nodiscard]] double rate() const;

    // For decoding: an empty bucket that once had `maximum` cells, and a cell as it was stored.
    explicit CountingBucket(std::uint32_t maximum = 0) : maximum_(maximum) {}
    void restore(const Cell& cell) { cells_[load_++] = cell; }

  private:
    bool insert_two_sizes(std::uint64_t remainder, const CountingShape& shape);
    void shorten(std::uint32_t from, std::uint32_t to); // cuts cells longer than `from` bits to `to` bits
    void append(std::uint64_t remainder, std::uint32_t length);

    std::uint32_t load_ = 0;
    std::uint32_t maximum_ = 0;
    std::array<Cell, room> cells_{};
};

} // namespace sieve
