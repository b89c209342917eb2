// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ranges/members_of_lines.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include <sieve/ranges.h>

namespace sieve::ranges {

namespace {

constexpr std::uint64_t last_word = std::numeric_limits<std::uint64_t>::max();

// A filter's lines in memory, for the shared code's fetch.
struct Lines {
    std::span<const sieve_line> all;

    [[nodiscard]] const sieve_line* at(std::uint64_t line) const {
        return line < all.size() ? &all[line] : nullptr;
    }
    static const sieve_line* fetch(void* lines, __u32 line) {
        return static_cast<const Lines*>(lines)->at(line);
    }
};

// Numbers of a part, from `first` to `last`.
struct Numbers {
    uint128 first;
    uint128 last;
};

// One part. Its numbers have all 128 bits in the fine part; in the others they are the upper word alone.
template <int part>
class PartReader {
    static constexpr bool fine = part == SIEVE_RANGES_FINE;
    static constexpr std::size_t ways = part == SIEVE_RANGES_IPV4   ? SIEVE_RANGES_WAYS_IPV4
                                        : part == SIEVE_RANGES_IPV6 ? SIEVE_RANGES_WAYS_IPV6
                                                                    : SIEVE_RANGES_WAYS_FINE;
    // A separator's sign changes above it and, in words of 64 bits, once more half of all numbers later.
    static constexpr uint128 half = part == SIEVE_RANGES_IPV4   ? 0
                                    : part == SIEVE_RANGES_IPV6 ? uint128{1} << 63
                                                                : uint128{1} << 127;
    static constexpr uint128 last_number = part == SIEVE_RANGES_IPV4   ? 0xffffffff
                                           : part == SIEVE_RANGES_IPV6 ? uint128{last_word}
                                                                       : ~uint128{0};

  public:
    PartReader(const sieve_lookup& lookup, std::span<const sieve_line> filter,
               const std::function<void(const Numbers&)>& visit)
        : lookup_(lookup), lines_{filter}, visit_(visit) {}

    Status read() {
        const std::uint64_t cells = sieve_ranges_cells(&lookup_, part);
        const std::uint64_t origin = sieve_ranges_origin(&lookup_, part);
        const std::uint32_t shift = sieve_ranges_shift(&lookup_, part);
        // A builder's leaf is read once for each of its cells, any other line once.
        most_ = cells + lines_.all.size();
        // Behind the last cell. If the cells reach the last number, there is none.
        const uint128 end = uint128{origin} + (uint128{cells} << shift);
        if (origin > 0) say({0, number_of(origin) - 1}, flag(SIEVE_RANGES_BELOW_BIT));
        for (std::uint64_t cell = 0; cell < cells; cell++) read_cell(cell, origin + (cell << shift), shift);
        const uint128 last_upper = fine ? uint128{last_word} : last_number;
        if (end <= last_upper)
            say({number_of(static_cast<std::uint64_t>(end)), last_number}, flag(SIEVE_RANGES_ABOVE_BIT));
        say_last();
        if (visited_ <= most_) return {};
        return bad_input("its lines lead to each other more often than those of a builder");
    }

  private:
    [[nodiscard]] static uint128 number_of(std::uint64_t upper) {
        return fine ? uint128{upper} << 64 : upper;
    }
    [[nodiscard]] static sieve_ranges_number as_asked(uint128 number) {
        if constexpr (fine)
            return {static_cast<std::uint64_t>(number >> 64), static_cast<std::uint64_t>(number)};
        return {static_cast<std::uint64_t>(number), 0};
    }
    [[nodiscard]] static uint128 separator(const sieve_line& line, std::size_t i) {
        if constexpr (part == SIEVE_RANGES_IPV4)
            return reinterpret_cast<const sieve_ranges_u32*>(line.word)[i];
        if constexpr (fine) return address_number(line.word[i], line.word[i + ways]);
        return line.word[i];
    }
    [[nodiscard]] bool flag(int bit) const { return (lookup_.hash_key[2 * part] >> bit & 1) != 0; }

    void read_cell(std::uint64_t cell, std::uint64_t upper, std::uint32_t shift) {
        const uint128 first = number_of(upper);
        const Numbers numbers{first, first + ((fine ? uint128{1} << 64 : 1) << shift) - 1};
        const sieve_line* line = lines_.at(sieve_ranges_table(&lookup_, part) + cell / SIEVE_RANGES_ENTRIES);
        if (line == nullptr) return say(numbers, false);
        const std::uint32_t entry =
            reinterpret_cast<const sieve_ranges_u32*>(line->word)[cell % SIEVE_RANGES_ENTRIES];
        const std::uint32_t depth = entry >> SIEVE_RANGES_DEPTH_SHIFT & SIEVE_RANGES_DEPTH_MASK;
        const std::uint32_t at = entry >> SIEVE_RANGES_LINE_SHIFT;
        if (depth == 0) return say(numbers, (entry & 1) != 0);
        if (depth == SIEVE_RANGES_BITMAP) return read_bitmap(at, upper, shift);
        walk(at, std::min(depth, sieve_ranges_depth(part)), (entry & 1) != 0, numbers);
    }

    void read_bitmap(std::uint32_t at, std::uint64_t upper, std::uint32_t shift) {
        // Costs as much as the lookups of a line's bits, so it counts as often as a builder makes one.
        bitmaps_++;
        const sieve_line* line = lines_.at(at);
        if (!may_visit() || bitmaps_ > lines_.all.size()) {
            visited_ = most_ + 1;
            return;
        }
        const std::uint32_t grain = sieve_ranges_grain(shift);
        for (std::uint64_t piece = 0; piece < std::uint64_t{1} << (shift - grain); piece++) {
            const std::uint64_t bit = (upper >> grain) + piece;
            const bool inside =
                line != nullptr && (line->word[bit / 64 % SIEVE_LINE_WORDS] >> (bit % 64) & 1) != 0;
            const uint128 first = number_of(upper + (piece << grain));
            say({first, first + ((fine ? uint128{1} << 64 : 1) << grain) - 1}, inside);
        }
    }

    // False once there was too much of it.
    bool may_visit() {
        if (visited_ <= most_) visited_++;
        return visited_ <= most_;
    }

    // The numbers that go to the line with so many levels from it downwards.
    void walk(std::uint32_t at, std::uint32_t levels, bool inside, const Numbers& numbers) {
        if (!may_visit()) return;
        const sieve_line* line = lines_.at(at);
        if (line == nullptr) return say(numbers, false);
        // Where the line's answer may change: the first numbers of pieces.
        std::array<uint128, 2 * ways + 1> firsts{numbers.first};
        std::size_t pieces = 1;
        for (std::size_t i = 0; i < (levels > 1 ? ways - 1 : ways); i++) {
            const uint128 above = (separator(*line, i) + 1) & last_number;
            for (const uint128 change : {above, (above + half) & last_number})
                if (change > numbers.first && change <= numbers.last) firsts[pieces++] = change;
        }
        std::sort(firsts.begin(), firsts.begin() + static_cast<std::ptrdiff_t>(pieces));
        for (std::size_t i = 0; i < pieces; i++) {
            if (i + 1 < pieces && firsts[i] == firsts[i + 1]) continue;
            const Numbers piece{firsts[i], i + 1 < pieces ? firsts[i + 1] - 1 : numbers.last};
            if (levels > 1)
                walk(sieve_ranges_child(line, part, as_asked(piece.first)), levels - 1, inside, piece);
            else
                say(piece, inside != (sieve_ranges_parity(line, part, as_asked(piece.first)) != 0));
        }
    }

    // Numbers come in rising order; what is adjacent is said at once.
    void say(const Numbers& numbers, bool member) {
        if (!member) return;
        if (pending_ && pending_->last + 1 == numbers.first) {
            pending_->last = numbers.last;
            return;
        }
        say_last();
        pending_ = numbers;
    }
    void say_last() {
        if (pending_) visit_(*pending_);
        pending_.reset();
    }

    const sieve_lookup& lookup_;
    const Lines lines_;
    const std::function<void(const Numbers&)>& visit_;
    std::optional<Numbers> pending_;
    std::uint64_t visited_ = 0;
    std::uint64_t bitmaps_ = 0;
    std::uint64_t most_ = 0;
};

template <int part>
Status read_part(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                 const std::function<void(const Numbers&)>& visit) {
    return PartReader<part>(lookup, filter, visit).read();
}

} // namespace

Status visit_members(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                     const std::function<void(const AddressRange&)>& visit) {
    SIEVE_TRY(read_part<SIEVE_RANGES_IPV4>(lookup, filter, [&](const Numbers& numbers) {
        visit({all_ipv4.first + numbers.first, all_ipv4.first + numbers.last});
    }));
    SIEVE_TRY(read_part<SIEVE_RANGES_IPV6>(lookup, filter, [&](const Numbers& numbers) {
        visit({numbers.first << 64, numbers.last << 64 | last_word});
    }));
    // A lookup asks the fine part only if it has cells.
    if (sieve_ranges_cells(&lookup, SIEVE_RANGES_FINE) == 0) return {};
    Lines lines{filter};
    bool twice = false;
    const auto is_whole = [&](uint128 number) {
        return sieve_ranges_ask(&lookup, SIEVE_RANGES_IPV6, {static_cast<std::uint64_t>(number >> 64), 0},
                                Lines::fetch, &lines) != 0;
    };
    SIEVE_TRY(read_part<SIEVE_RANGES_FINE>(lookup, filter, [&](const Numbers& numbers) {
        // Pieces of neighbouring /64s may meet.
        twice = twice || (numbers.last >> 64) - (numbers.first >> 64) > 1 || is_whole(numbers.first) ||
                is_whole(numbers.last);
        // An IPv4 packet does not ask this part.
        if (!is_ipv4(numbers.first) || !is_ipv4(numbers.last)) visit({numbers.first, numbers.last});
    }));
    if (twice) return bad_input("it holds pieces of a /64 that it holds as a whole, too");
    return {};
}

} // namespace sieve::ranges
