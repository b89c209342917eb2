// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "model/ranges_model.hpp"

#include <array>

namespace sieve::model {

namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t first_line = 6;

} // namespace

std::uint64_t RangesImage::number(std::size_t offset, std::size_t size) const {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value * 256 + bytes_.at(offset + i);
    return value;
}

RangesImage::RangesImage(std::span<const unsigned char> bytes) : bytes_(bytes.begin(), bytes.end()) {
    line_count_ = number(8, 4);
}

RangesImage::Part RangesImage::part(std::size_t index) const {
    constexpr std::array<unsigned, 3> bits = {32, 64, 128}, ways = {16, 8, 4}, levels = {8, 10, 14};
    const std::uint64_t first = number(16 + 16 * index, 8);
    return {.bits = bits[index],
            .ways = ways[index],
            .most_levels = levels[index],
            .origin = first / 256 * 256,
            .shift = static_cast<unsigned>(first % 64),
            .below = first / 64 % 2 == 1,
            .above = first / 128 % 2 == 1,
            .cells = number(24 + 16 * index, 4),
            .table = number(28 + 16 * index, 4)};
}

// A number of 128 bits has its upper halves in the first half of the line and its lower ones in the second.
RangesImage::Wide RangesImage::item(std::uint64_t line, unsigned size, std::uint64_t i) const {
    const std::size_t at = (first_line + line) * line_bytes;
    if (size == 128)
        return static_cast<Wide>(number(at + 8 * i, 8)) << 64 | number(at + line_bytes / 2 + 8 * i, 8);
    return number(at + size / 8 * i, size / 8);
}

// The sign of separator - number tells, in as many bits as the part computes with.
unsigned RangesImage::below(const Part& part, std::uint64_t line, unsigned count, Wide number) const {
    const unsigned sign = part.bits == 128 ? 127 : 63;
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += static_cast<unsigned>((item(line, part.bits, i) - number) >> sign & 1);
    return sum;
}

bool RangesImage::holds(const Part& part, Wide number) const {
    // The fine part's table goes by upper words.
    const Wide cut = part.bits == 128 ? number >> 64 : number;
    if (cut < part.origin) return part.below;
    const Wide cell = (cut - part.origin) / (Wide{1} << part.shift);
    if (cell >= part.cells) return part.above;
    const auto at = static_cast<std::uint64_t>(cell);
    if (part.table + at / 16 >= line_count_) return false;
    const auto entry = static_cast<std::uint64_t>(item(part.table + at / 16, 32, at % 16));
    const bool before = entry % 2 == 1;
    auto level = static_cast<unsigned>(entry / 2 % 16);
    std::uint64_t line = entry / 32;
    if (level == 0) return before;
    if (line >= line_count_) return false;
    if (level == 15) {
        // 512 pieces of the cell, the first of which begins with the cell.
        const unsigned grain = part.shift > 9 ? part.shift - 9 : 0;
        const auto piece = static_cast<std::uint64_t>((cut >> grain) % 512);
        return (number_of_bit(line, piece)) != 0;
    }
    for (unsigned read = 1; read < part.most_levels && level > 1; read++, level--) {
        const unsigned separators = part.ways - 1;
        // The last place of an inner line names its first child. In the fine part this is an upper word.
        const std::uint64_t child = part.bits == 128
                                        ? this->number((first_line + line) * line_bytes + 8 * separators, 8)
                                        : static_cast<std::uint64_t>(item(line, part.bits, separators));
        line = (child + below(part, line, separators, number)) % (1ULL << 32);
        if (line >= line_count_) return false;
    }
    return (below(part, line, part.ways, number) % 2 == 1) != before;
}

std::uint64_t RangesImage::number_of_bit(std::uint64_t line, std::uint64_t bit) const {
    return number((first_line + line) * line_bytes + bit / 8, 1) >> (bit % 8) & 1;
}

// An IPv4 address is v4-mapped and asks the first part only.
bool RangesImage::contains(std::uint64_t upper, std::uint64_t lower) const {
    if (upper == 0 && lower >> 32 == 0xffff) return holds(part(0), lower % (1ULL << 32));
    const Part fine = part(2);
    return holds(part(1), upper) || (fine.cells > 0 && holds(fine, static_cast<Wide>(upper) << 64 | lower));
}

} // namespace sieve::model
