// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The geometry of the IPv4 part of a table of kind `exact` (sieve/exact_table.h): its shape, its size, its
// secrets.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>

#include <sieve/exact_table.h>

namespace sieve::exact {

/// How a word is cut into lanes, and the load that the builder aims at: what two words of so many lanes carry
/// (docs/exact.md), less a margin.
struct Shape {
    std::uint32_t lanes;
    std::uint32_t width; ///< bits of a lane, a mark included
    double load;
};

/// From one lane of a word to the next one: the bits of a lane, and a mark.
[[nodiscard]] inline std::uint32_t lane_bits(const sieve_exact& exact) {
    return std::uint32_t{exact.width} + exact.marks;
}

/// All shapes, for rising numbers of keys.
[[nodiscard]] std::span<const Shape> shapes();

/// The lines that so many keys with so many other bits each, those of a value and a mark, take in this shape:
/// what the load asks for, or the words without which the lanes would be too narrow. If they always are, more
/// lines than a filter can have.
[[nodiscard]] std::uint64_t lines_for(const Shape& shape, std::uint64_t keys, std::uint32_t other_bits = 0);

/// The shape in which so many keys take the fewest lines.
[[nodiscard]] const Shape& best_shape(std::uint64_t keys, std::uint32_t other_bits = 0);

/// The geometry of a table of so many lines (at least lines_for(shape, 0, value_bits + marks)) without
/// secrets. `marks`: 1 if keys have marks.
[[nodiscard]] sieve_exact geometry_of(const Shape& shape, std::uint64_t lines, std::uint32_t value_bits = 0,
                                      std::uint32_t marks = 0);

/// Draws the secrets of the IPv4 part. Weak multipliers are drawn again.
void draw_secrets(sieve_exact& exact, std::mt19937_64& random);

/// Whether a multiplier scatters too little: few additions and subtractions of shifted numbers make up the
/// product, or it hardly reaches the highest bits. About one random number in a hundred is weak.
[[nodiscard]] bool is_weak(std::uint32_t multiplier);

/// What is wrong with the fields of line 0, each against all others; empty if nothing is.
[[nodiscard]] std::string fault(const sieve_exact& exact);

} // namespace sieve::exact
