// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_geometry.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <fmt/core.h>

namespace sieve::exact {

namespace {

constexpr std::uint64_t addresses = std::uint64_t{1} << 32;
constexpr std::uint32_t least_width = 4;
constexpr std::uint32_t most_width = 32;

// The largest R: what a lane has beside its other bits holds 2 R remainders, and one number more.
std::uint64_t most_range(std::uint32_t width, std::uint32_t other_bits) {
    return width > other_bits ? ((std::uint64_t{1} << (width - other_bits)) - 1) / 2 : 0;
}

std::uint64_t range_of(std::uint64_t words) {
    return (addresses + words - 1) / words;
}

std::uint64_t feet_of(std::uint32_t width) {
    std::uint64_t feet = 0;
    for (std::uint32_t lane = 0; lane < 64 / width; lane++) feet |= std::uint64_t{1} << (lane * width);
    return feet;
}

// Where the last lane begins. Lookups ask only if there are values.
std::uint32_t last_lane(std::uint32_t width, std::uint32_t value_bits) {
    return value_bits > 0 ? (64 / width - 1) * width : 0;
}

// From here on, the second word is near the first one, so that parts of the table are filled in parallel
// (exact_ipv4.cpp). A nearer one would cost load: the fewer words share their keys, the more their loads
// differ.
constexpr std::uint64_t words_of_a_large_table = std::uint64_t{1} << 20;
constexpr std::uint32_t reach_in_a_large_table = 1U << 15;

} // namespace

std::span<const Shape> shapes() {
    static constexpr auto all = std::to_array<Shape>({
        {2, 32, .86},
        {3, 21, .945},
        {4, 16, .965},
        {5, 12, .975},
        {6, 10, .985},
        {7, 9, .985},
        {8, 8, .985},
        {9, 7, .985},
        {10, 6, .985},
        {12, 5, .985},
        {16, 4, .985},
    });
    return all;
}

std::uint64_t lines_for(const Shape& shape, std::uint64_t keys, std::uint32_t other_bits) {
    const auto by_load =
        static_cast<std::uint64_t>(std::ceil(static_cast<double>(keys) / (shape.lanes * shape.load)));
    const std::uint64_t range = most_range(shape.width, other_bits);
    if (range == 0) return addresses;
    const std::uint64_t by_width = (addresses + range - 1) / range;
    return std::max<std::uint64_t>(1,
                                   (std::max(by_load, by_width) + SIEVE_LINE_WORDS - 1) / SIEVE_LINE_WORDS);
}

const Shape& best_shape(std::uint64_t keys, std::uint32_t other_bits) {
    return *std::min_element(shapes().begin(), shapes().end(), [&](const Shape& one, const Shape& two) {
        return lines_for(one, keys, other_bits) < lines_for(two, keys, other_bits);
    });
}

sieve_exact geometry_of(const Shape& shape, std::uint64_t lines, std::uint32_t value_bits,
                        std::uint32_t marks) {
    const std::uint64_t words = lines * SIEVE_LINE_WORDS;
    sieve_exact exact{};
    exact.choices = SIEVE_EXACT_CHOICES;
    exact.width = static_cast<__u8>(shape.width - marks);
    exact.marks = static_cast<__u8>(marks);
    exact.value_bits = static_cast<__u8>(value_bits);
    exact.last = static_cast<__u8>(last_lane(shape.width, value_bits));
    exact.words = static_cast<__u32>(words);
    exact.range = static_cast<__u32>(range_of(words));
    exact.reach = words < words_of_a_large_table ? static_cast<__u32>(words - 1) : reach_in_a_large_table;
    exact.feet = feet_of(shape.width);
    exact.second = (std::uint64_t{exact.range} << value_bits) * exact.feet;
    return exact;
}

void draw_secrets(sieve_exact& exact, std::mt19937_64& random) {
    const auto multiplier = [&random] {
        std::uint32_t drawn = 0;
        do drawn = static_cast<std::uint32_t>(random()) | 1;
        while (is_weak(drawn));
        return drawn;
    };
    exact.add = static_cast<__u32>(random());
    for (__u32& factor : exact.multiply) factor = multiplier();
    exact.spread = multiplier();
}

bool is_weak(std::uint32_t multiplier) {
    // The non-adjacent form has the fewest digits other than zero of all sums of signed powers of two; its
    // digits are the ones of x ^ 3x (Reitwiesner, "Binary Arithmetic", 1960). A random number has 11.
    constexpr int least_digits = 7;
    const std::uint64_t x = multiplier;
    const std::uint32_t top = multiplier >> 24;
    return top == 0 || top == 0xff || std::popcount(x ^ (3 * x)) < least_digits;
}

std::string fault(const sieve_exact& exact) {
    if (exact.probes != 0) return "fields of other kinds in a header of kind exact";
    if (!sieve_is_one_address(exact.fields))
        return "a filter of kind exact whose key is not one address, which alone it compares";
    if (exact.marks > 1) return fmt::format("{} marks a key, expected at most one", exact.marks);
    const std::uint32_t width = lane_bits(exact);
    if (width < least_width || width > most_width)
        return fmt::format("lanes of {} bits, expected {} to {}", exact.width, least_width - exact.marks,
                           most_width - exact.marks);
    if (exact.value_bits > SIEVE_EXACT_MOST_VALUE_BITS)
        return fmt::format("values of {} bits, expected at most {}", exact.value_bits,
                           SIEVE_EXACT_MOST_VALUE_BITS);
    if (exact.marks != 0 && exact.value_bits != 0) return "keys with both values and marks";
    if (exact.words == 0 || exact.words % SIEVE_LINE_WORDS != 0)
        return fmt::format("{} words, expected whole lines of {}", exact.words, SIEVE_LINE_WORDS);
    if (sieve_exact_ipv6_line(&exact) > exact.lines)
        return fmt::format("{} words in a filter of {} lines", exact.words, exact.lines);
    if (exact.range != range_of(exact.words))
        return fmt::format("{} remainders in {} words, expected {}", exact.range, exact.words,
                           range_of(exact.words));
    if (const std::uint64_t most = most_range(exact.width, exact.value_bits); exact.range > most)
        return fmt::format("{} remainders in lanes of {} bits, which hold {} beside values of {} bits",
                           exact.range, exact.width, most, exact.value_bits);
    if (exact.reach == 0 || exact.reach >= exact.words)
        return fmt::format("a second word up to {} words behind the first one of {}", exact.reach,
                           exact.words);
    if (exact.feet != feet_of(width) || exact.last != last_lane(width, exact.value_bits) ||
        exact.second != (std::uint64_t{exact.range} << exact.value_bits) * exact.feet)
        return "masks that are not those of its lanes";
    for (const std::uint32_t factor : {exact.multiply[0], exact.multiply[1], exact.multiply[2], exact.spread})
        if (factor % 2 == 0 || is_weak(factor)) return "a weak multiplier, which scatters too little";
    return {};
}

} // namespace sieve::exact
