// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/dleft/dleft_bucket.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace sieve {

namespace {

constexpr std::uint32_t word_bits = 64;
constexpr std::uint32_t none_state = 0xffff;

// Writes up to 64 bits at any bit offset of a line.
void put_bits(sieve_line& line, std::uint32_t at, std::uint32_t width, std::uint64_t value) {
    if (width == 0) return;
    value &= ~std::uint64_t{0} >> (word_bits - width);
    line.word[at / word_bits] |= value << (at % word_bits);
    if (at % word_bits + width > word_bits)
        line.word[at / word_bits + 1] |= value >> (word_bits - at % word_bits);
}

std::uint64_t get_bits(const sieve_line& line, std::uint32_t at, std::uint32_t width) {
    if (width == 0) return 0;
    std::uint64_t value = line.word[at / word_bits] >> (at % word_bits);
    if (at % word_bits + width > word_bits)
        value |= line.word[at / word_bits + 1] << (word_bits - at % word_bits);
    return value & (~std::uint64_t{0} >> (word_bits - width));
}

std::span<const std::uint16_t> states(const DleftShape& shape) {
    // States that are not listed are zero, like the empty bucket's state.
    if (shape.wide()) return sieve_dleft_states128[shape.sorting];
    return sieve_dleft_states64[shape.sorting];
}

// The counter's value for fingerprints in ascending order.
std::uint32_t counter_of(const DleftShape& shape, std::span<const std::uint64_t> sorted_tests) {
    const auto load = static_cast<std::uint32_t>(sorted_tests.size());
    const std::uint32_t bits = shape.sorted_bits(load);
    std::uint32_t state = load << 12;
    for (std::uint32_t value = 1; value < 4; value++) {
        std::uint32_t below = load;
        if (value < (1U << bits))
            below = static_cast<std::uint32_t>(
                std::ranges::lower_bound(sorted_tests, std::uint64_t{value} << (word_bits - bits)) -
                sorted_tests.begin());
        state |= below << (4 * (value - 1));
    }
    const auto table = states(shape);
    return static_cast<std::uint32_t>(std::ranges::find(table, state) - table.begin());
}

// One cell of a bucket: up to two pieces, the lower bits first.
struct Piece {
    std::uint32_t at = 0;
    std::uint32_t bits = 0;
};
struct Cell {
    Piece lower;
    Piece upper;
};

void put_cell(sieve_line& line, const Cell& cell, std::uint64_t value) {
    put_bits(line, cell.lower.at, cell.lower.bits, value);
    put_bits(line, cell.upper.at, cell.upper.bits, value >> cell.lower.bits);
}

std::uint64_t get_cell(const sieve_line& line, const Cell& cell) {
    return get_bits(line, cell.lower.at, cell.lower.bits) |
           (get_bits(line, cell.upper.at, cell.upper.bits) << cell.lower.bits);
}

// Finds cell `index` of `load` cells in the bucket that begins at bit `base` of the line. The counter takes
// `skip` bits of each word.
Cell cell_of(const DleftShape& shape, std::uint32_t base, std::uint32_t skip, std::uint32_t load,
             std::uint32_t width, std::uint32_t index) {
    if (!shape.wide()) return {{base + skip + index * width, width}, {}};
    const std::uint32_t at = base + skip + index / 2 * width;
    if (index % 2 != 0) return {{at + word_bits, width}, {}};
    if (index + 1 < load) return {{at, width}, {}};
    const std::uint32_t lower = std::min(width, word_bits - skip - index / 2 * width);
    return {{at, lower}, {at + word_bits, width - lower}};
}

struct Spread {
    std::uint32_t load;
    std::uint32_t width;
    std::uint32_t skip;
    bool always;
};

// A bucket above the top load.
Spread overflow_of(const DleftShape& shape, std::uint32_t n) {
    const std::uint32_t bits = shape.wide() ? 112 : 56;
    if (n == SIEVE_DLEFT_ALWAYS) return {2, 1, 8, true};
    const std::uint32_t load = shape.top_load() + n + (shape.wide() ? 1 : 0);
    return {load, bits / load, 8, false};
}

void put_counter(const DleftShape& shape, sieve_line& line, std::uint32_t base, std::uint32_t counter) {
    put_bits(line, base, 4, counter);
    if (shape.wide()) put_bits(line, base + word_bits, 4, counter >> 4);
}

std::uint64_t stored_bits(std::uint64_t test, std::uint32_t sorted, std::uint32_t width) {
    return (test << sorted) >> (word_bits - width);
}

void encode_bucket(const DleftShape& shape, std::span<const std::uint64_t> tests, sieve_line& line,
                   std::uint32_t base) {
    const auto load = static_cast<std::uint32_t>(tests.size());
    if (load == 0) return; // all zero
    if (load <= shape.top_load()) {
        const std::uint32_t width = shape.cell_width(load);
        put_counter(shape, line, base, counter_of(shape, tests));
        for (std::uint32_t i = 0; i < load; i++)
            put_cell(line, cell_of(shape, base, 4, load, width, i),
                     stored_bits(tests[i], shape.sorted_bits(load), width));
        return;
    }
    put_counter(shape, line, base, shape.wide() ? SIEVE_DLEFT128_OVERFLOW : 0);
    const std::uint32_t n = load > shape.most_load() ? std::uint32_t{SIEVE_DLEFT_ALWAYS}
                                                     : load - shape.top_load() - (shape.wide() ? 1 : 0);
    const Spread spread = overflow_of(shape, n);
    put_bits(line, base + 4, 4, n);
    for (std::uint32_t i = 0; i < spread.load; i++)
        put_cell(line, cell_of(shape, base, spread.skip, spread.load, spread.width, i),
                 spread.always ? i : stored_bits(tests[i], 0, spread.width));
}

// The value of the sorted bits of cell `index`.
std::uint64_t group_of(std::uint32_t state, std::uint32_t index) {
    std::uint64_t group = 0;
    for (std::uint32_t i = 0; i < 3; i++) group += index >= ((state >> (4 * i)) & 15) ? 1 : 0;
    return group;
}

DleftBucket decode_bucket(const DleftShape& shape, const sieve_line& line, std::uint32_t base) {
    DleftBucket bucket;
    auto counter = static_cast<std::uint32_t>(get_bits(line, base, 4));
    if (shape.wide()) counter |= static_cast<std::uint32_t>(get_bits(line, base + word_bits, 4)) << 4;
    const auto n = static_cast<std::uint32_t>(get_bits(line, base + 4, 4));
    const bool overflowed =
        shape.wide() ? counter == SIEVE_DLEFT128_OVERFLOW : counter == 0 && get_bits(line, base + 4, 60) != 0;
    const std::uint32_t state = overflowed ? none_state : states(shape)[counter];
    Spread spread{state >> 12, 0, 4, false};
    if (overflowed) {
        spread = overflow_of(shape, n);
        bucket.overflowed = true;
        bucket.always = spread.always;
        if (bucket.always) return bucket;
    } else {
        if (spread.load == 0) return bucket;
        spread.width = shape.cell_width(spread.load);
    }
    const std::uint32_t sorted = overflowed ? 0 : shape.sorted_bits(spread.load);
    bucket.load = spread.load;
    bucket.length = spread.width + sorted;
    for (std::uint32_t i = 0; i < spread.load; i++) {
        const std::uint64_t group = sorted == 0 ? 0 : group_of(state, i);
        bucket.fingerprints[i] =
            (group << spread.width) |
            get_cell(line, cell_of(shape, base, spread.skip, spread.load, spread.width, i));
    }
    return bucket;
}

// Bits of a counter in a group, and bits of a whole group.
std::uint32_t counter_bits(const DleftShape& shape) {
    return shape.wide() ? 8 : 4;
}
std::uint32_t group_bits(const DleftShape& shape) {
    return shape.wide() ? 512 : 256;
}

Status encode_group(const DleftShape& shape, std::span<const std::span<std::uint64_t>> tests,
                    sieve_line& line, std::uint32_t base) {
    std::uint32_t sum = 0;
    for (const auto& bucket : tests) {
        const auto load = static_cast<std::uint32_t>(bucket.size());
        if (load <= shape.top_load())
            sum += load;
        else if (!shape.wide())
            return bad_input(fmt::format("a bucket got {} keys, a grouped 64-bit bucket holds {}: choose a "
                                         "larger filter, another seed, or no grouping",
                                         load, shape.top_load()));
    }
    const std::uint32_t width = sum == 0 ? 0 : shape.grouped_width(sum);
    std::uint32_t at = base + SIEVE_DLEFT_GROUP * counter_bits(shape);
    for (std::uint32_t member = 0; member < SIEVE_DLEFT_GROUP; member++) {
        const auto load = static_cast<std::uint32_t>(tests[member].size());
        const bool always = load > shape.top_load();
        put_bits(line, base + member * counter_bits(shape), counter_bits(shape),
                 always ? std::uint32_t{SIEVE_DLEFT128_OVERFLOW} : counter_of(shape, tests[member]));
        if (always) continue;
        for (const std::uint64_t test : tests[member]) {
            put_bits(line, at, width, stored_bits(test, shape.sorted_bits(load), width));
            at += width;
        }
    }
    return {};
}

void decode_group(const DleftShape& shape, const sieve_line& line, std::uint32_t base,
                  std::vector<DleftBucket>& buckets) {
    std::array<std::uint32_t, SIEVE_DLEFT_GROUP> state{};
    std::array<bool, SIEVE_DLEFT_GROUP> always{};
    std::uint32_t sum = 0;
    for (std::uint32_t member = 0; member < SIEVE_DLEFT_GROUP; member++) {
        const auto counter = static_cast<std::uint32_t>(
            get_bits(line, base + member * counter_bits(shape), counter_bits(shape)));
        always[member] = shape.wide() && counter == SIEVE_DLEFT128_OVERFLOW;
        state[member] = always[member] ? 0 : states(shape)[counter];
        sum += state[member] >> 12;
    }
    const std::uint32_t width = sum == 0 ? 0 : shape.grouped_width(sum);
    std::uint32_t at = base + SIEVE_DLEFT_GROUP * counter_bits(shape);
    for (std::uint32_t member = 0; member < SIEVE_DLEFT_GROUP; member++) {
        DleftBucket bucket;
        bucket.always = bucket.overflowed = always[member];
        bucket.load = state[member] >> 12;
        const std::uint32_t sorted = shape.sorted_bits(bucket.load);
        bucket.length = bucket.load == 0 ? 0 : width + sorted;
        for (std::uint32_t i = 0; i < bucket.load; i++, at += width)
            bucket.fingerprints[i] =
                ((sorted == 0 ? 0 : group_of(state[member], i)) << width) | get_bits(line, at, width);
        buckets.push_back(bucket);
    }
}

} // namespace

std::uint32_t DleftShape::sorted_bits(std::uint32_t load) const {
    if (sorting == 0 || load > top_load()) return 0;
    if (!wide()) return load == 4 || load == 5 ? 1 : 0;
    return sorting == 2 && (load == 6 || load == 7) ? 2 : 1;
}

std::uint32_t DleftShape::cell_width(std::uint32_t load) const {
    if (load > top_load()) return (wide() ? 112U : 56U) / load;
    return std::min<std::uint32_t>(SIEVE_DLEFT_MAX_WIDTH, (wide() ? 120U : 60U) / load);
}

std::uint32_t DleftShape::grouped_width(std::uint32_t sum) const {
    return std::min<std::uint32_t>(SIEVE_DLEFT_MAX_WIDTH, SIEVE_DLEFT_GROUP * (wide() ? 120U : 60U) / sum);
}

Status DleftShape::check() const {
    if (kind != SIEVE_KIND_DLEFT64 && kind != SIEVE_KIND_DLEFT128)
        return invalid_request(fmt::format("kind {} is no d-left filter", static_cast<unsigned>(kind)));
    if (subtables < SIEVE_DLEFT_MIN_SUBTABLES || subtables > SIEVE_DLEFT_MAX_SUBTABLES)
        return invalid_request(fmt::format("{} subtables, expected {} to {}", subtables,
                                           SIEVE_DLEFT_MIN_SUBTABLES, SIEVE_DLEFT_MAX_SUBTABLES));
    if (sorting > (wide() ? 2U : 1U))
        return invalid_request(
            fmt::format("semi-sorting on {} bits, expected 0 to {}", sorting, wide() ? 2 : 1));
    return {};
}

void store_shape(const DleftShape& shape, sieve_lookup& lookup) {
    lookup.kind = static_cast<__u8>(shape.kind);
    lookup.choices = static_cast<__u8>(shape.subtables);
    lookup.hashes = static_cast<__u8>(shape.sorting | (shape.grouped ? SIEVE_DLEFT_GROUPED : 0));
    lookup.alpha = 0;
}

DleftShape shape_of(const sieve_lookup& lookup) {
    return {.kind = static_cast<sieve_kind>(lookup.kind),
            .subtables = lookup.choices,
            .sorting = lookup.hashes & SIEVE_DLEFT_SORTING,
            .grouped = (lookup.hashes & SIEVE_DLEFT_GROUPED) != 0};
}

std::span<const std::uint64_t> DleftBucket::distinct() {
    // The builder stores fingerprints in ascending order. An image from elsewhere may hold them in any order.
    const auto end = fingerprints.begin() + load;
    if (!std::is_sorted(fingerprints.begin(), end)) std::sort(fingerprints.begin(), end);
    return {fingerprints.begin(), std::unique(fingerprints.begin(), end)};
}

double DleftBucket::rate() const {
    if (always) return 1;
    DleftBucket copy = *this;
    return std::ldexp(static_cast<double>(copy.distinct().size()), -static_cast<int>(length));
}

Status encode_line(const DleftShape& shape, std::span<const std::span<std::uint64_t>> tests,
                   sieve_line& line) {
    for (const auto& bucket : tests) std::ranges::sort(bucket);
    sieve_line fresh{};
    if (shape.grouped) {
        for (std::uint32_t b = 0; b < shape.buckets_per_line(); b += SIEVE_DLEFT_GROUP)
            SIEVE_TRY(encode_group(shape, tests.subspan(b, SIEVE_DLEFT_GROUP), fresh,
                                   b / SIEVE_DLEFT_GROUP * group_bits(shape)));
    } else {
        for (std::uint32_t b = 0; b < shape.buckets_per_line(); b++)
            encode_bucket(shape, tests[b], fresh, b * SIEVE_LINE_BITS / shape.buckets_per_line());
    }
    line = fresh;
    return {};
}

std::vector<DleftBucket> decode_line(const DleftShape& shape, const sieve_line& line) {
    std::vector<DleftBucket> buckets;
    buckets.reserve(shape.buckets_per_line());
    if (shape.grouped)
        for (std::uint32_t base = 0; base < SIEVE_LINE_BITS; base += group_bits(shape))
            decode_group(shape, line, base, buckets);
    else
        for (std::uint32_t b = 0; b < shape.buckets_per_line(); b++)
            buckets.push_back(decode_bucket(shape, line, b * SIEVE_LINE_BITS / shape.buckets_per_line()));
    return buckets;
}

} // namespace sieve
