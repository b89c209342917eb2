// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A slow, independent reading of images of kind `ranges`, written from the description of the format at the
// head of include/sieve/ranges.h. It shares no code with the packet path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sieve::model {

class RangesImage {
  public:
    explicit RangesImage(std::span<const unsigned char> bytes);

    // Whether the set holds this address of 128 bits, given as its two halves.
    [[nodiscard]] bool contains(std::uint64_t upper, std::uint64_t lower) const;

  private:
    __extension__ typedef unsigned __int128 Wide;

    // One of the three parts. Its numbers have `bits` bits, `ways` of them make a line.
    struct Part {
        unsigned bits;
        unsigned ways;
        unsigned most_levels; // below an entry
        Wide origin;          // of the first cell, in the numbers of the table
        unsigned shift;
        bool below, above; // membership outside the cells
        std::uint64_t cells;
        std::uint64_t table; // first line
    };

    [[nodiscard]] Part part(std::size_t index) const;
    [[nodiscard]] bool holds(const Part& part, Wide number) const;
    // The i-th number of `size` bits in a line.
    [[nodiscard]] Wide item(std::uint64_t line, unsigned size, std::uint64_t i) const;
    // How many of the first `count` separators of a line are below the number.
    [[nodiscard]] unsigned below(const Part& part, std::uint64_t line, unsigned count, Wide number) const;
    [[nodiscard]] std::uint64_t number_of_bit(std::uint64_t line, std::uint64_t bit) const;
    [[nodiscard]] std::uint64_t number(std::size_t offset, std::size_t size) const;

    std::vector<unsigned char> bytes_;
    std::uint64_t line_count_;
};

} // namespace sieve::model
