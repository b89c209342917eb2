// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_filter.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include <fmt/core.h>

namespace sieve {

namespace {

constexpr std::uint32_t word_bits = 64;

std::uint64_t low_mask(std::uint32_t bits) {
    return bits == 0 ? 0 : ~std::uint64_t{0} >> (word_bits - bits);
}

} // namespace

CountingShape DdlcbfShape::bucket() const {
    return {.bits = SIEVE_DDLCBF_CELL_BITS,
            .counter_bits = counter_bits,
            .sorted_bits = 1,
            .minimal = minimal,
            .least_cells = fixed_cells,
            .most_cells = fixed_cells != 0 ? fixed_cells : SIEVE_DDLCBF_MAX_CELLS};
}

Status DdlcbfShape::check() const {
    if (subtables < SIEVE_DLEFT_MIN_SUBTABLES || subtables > SIEVE_DLEFT_MAX_SUBTABLES)
        return invalid_request(fmt::format("{} subtables, expected {} to {}", subtables,
                                           SIEVE_DLEFT_MIN_SUBTABLES, SIEVE_DLEFT_MAX_SUBTABLES));
    if (counter_bits > 2)
        return invalid_request(fmt::format("counters of {} bits, expected 0 to 2", counter_bits));
    if (minimal < SIEVE_DDLCBF_MIN_MINIMAL || minimal > SIEVE_DDLCBF_MAX_MINIMAL)
        return invalid_request(fmt::format("a minimal remainder of {} bits, expected {} to {}", minimal,
                                           SIEVE_DDLCBF_MIN_MINIMAL, SIEVE_DDLCBF_MAX_MINIMAL));
    if (fixed_cells > SIEVE_DDLCBF_MAX_CELLS || (fixed_cells != 0 && bucket().capacity() < fixed_cells))
        return invalid_request(fmt::format("{} cells with a minimal remainder of {} bits do not fit a bucket",
                                           fixed_cells, minimal));
    return {};
}

void store_shape(const DdlcbfShape& shape, sieve_lookup& lookup) {
    lookup.kind = SIEVE_KIND_DDLCBF;
    lookup.choices = static_cast<__u8>(shape.subtables);
    lookup.hashes = static_cast<__u8>(shape.counter_bits | (shape.minimal << SIEVE_DDLCBF_MINIMAL_SHIFT));
    lookup.alpha = shape.fixed_cells;
}

DdlcbfShape ddlcbf_shape_of(const sieve_lookup& lookup) {
    return {.subtables = lookup.choices,
            .counter_bits = lookup.hashes & SIEVE_DDLCBF_COUNTER,
            .minimal = static_cast<std::uint32_t>(lookup.hashes >> SIEVE_DDLCBF_MINIMAL_SHIFT),
            .fixed_cells = lookup.alpha};
}

std::uint64_t encode_counting_bucket(const CountingBucket& bucket, const CountingShape& shape) {
    std::array<CountingBucket::Cell, CountingBucket::room> cells;
    for (std::uint32_t i = 0; i < bucket.load(); i++) cells[i] = bucket.cell(i);
    const auto used = std::span(cells).first(bucket.load());
    std::ranges::sort(used, [](const auto& a, const auto& b) {
        return a.remainder != b.remainder ? a.remainder < b.remainder : a.keys < b.keys;
    });

    std::uint32_t zeros = 0;
    for (const auto& cell : used) zeros += cell.remainder >> (word_bits - 1) == 0 ? 1 : 0;
    const std::uint32_t state = bucket.maximum() << 12 | bucket.load() << 8 | zeros << 4;
    auto word =
        static_cast<std::uint64_t>(std::ranges::find(sieve_ddlcbf_states, state) - sieve_ddlcbf_states);
    if (bucket.maximum() == 0) return word;

    const std::uint32_t width =
        std::min(shape.bits / bucket.maximum() - shape.counter_bits, word_bits - shape.sorted_bits);
    for (std::uint32_t i = 0; i < bucket.load(); i++) {
        word |= ((cells[i].remainder << shape.sorted_bits) >> (word_bits - width))
                << (SIEVE_DDLCBF_STATE_BITS + i * width);
        if (shape.counter_bits > 0)
            word |= std::uint64_t{cells[i].keys - 1} << (word_bits - (i + 1) * shape.counter_bits);
    }
    return word;
}

CountingBucket decode_counting_bucket(std::uint64_t word, const CountingShape& shape) {
    const std::uint32_t state = sieve_ddlcbf_states[word & low_mask(SIEVE_DDLCBF_STATE_BITS)];
    const std::uint32_t maximum = state >> 12;
    const std::uint32_t load = (state >> 8) & 15;
    const std::uint32_t zeros = (state >> 4) & 15;
    CountingBucket bucket(maximum);
    if (maximum == 0) return bucket;
    const std::uint32_t width =
        std::min(shape.bits / maximum - shape.counter_bits, word_bits - shape.sorted_bits);
    for (std::uint32_t i = 0; i < load; i++) {
        const std::uint64_t stored = (word >> (SIEVE_DDLCBF_STATE_BITS + i * width)) & low_mask(width);
        std::uint64_t keys = 1;
        if (shape.counter_bits > 0)
            keys += (word >> (word_bits - (i + 1) * shape.counter_bits)) & low_mask(shape.counter_bits);
        const std::uint64_t upper = width == 0 ? 0 : stored << (word_bits - width);
        bucket.restore(
            {.remainder = (i < zeros ? 0 : std::uint64_t{1} << (word_bits - 1)) | upper >> shape.sorted_bits,
             .length = width + shape.sorted_bits,
             .keys = static_cast<std::uint32_t>(keys)});
    }
    return bucket;
}

DdlcbfFilter::DdlcbfFilter(const sieve_lookup& lookup, std::span<sieve_line> lines)
    : lookup_(lookup), lines_(lines), shape_(ddlcbf_shape_of(lookup)), bucket_(shape_.bucket()) {}

Result<DdlcbfFilter> DdlcbfFilter::open(const sieve_lookup& lookup, std::span<sieve_line> lines) {
    if (lookup.kind != SIEVE_KIND_DDLCBF)
        return invalid_request(fmt::format("kind {} is no counting filter", lookup.kind));
    SIEVE_TRY(ddlcbf_shape_of(lookup).check());
    if (lookup.buckets == 0 || lookup.buckets > SIEVE_DLEFT_MAX_LINES ||
        lines.size() != std::uint64_t{lookup.buckets} * lookup.choices)
        return invalid_request(fmt::format("{} lines, the header asks for {} times {}", lines.size(),
                                           lookup.choices, lookup.buckets));
    return DdlcbfFilter(lookup, lines);
}

CountingBucket DdlcbfFilter::read(const sieve_ddlcbf_address& address) const {
    return decode_counting_bucket(lines_[address.line].word[address.position], bucket_);
}

void DdlcbfFilter::write(const sieve_ddlcbf_address& address, const CountingBucket& bucket) {
    const std::atomic_ref<__u64> word(lines_[address.line].word[address.position]);
    word.store(encode_counting_bucket(bucket, bucket_), std::memory_order_release);
}

bool DdlcbfFilter::contains(const sieve_hash& hash) const {
    sieve_ddlcbf_address address[SIEVE_DLEFT_MAX_SUBTABLES] = {};
    sieve_ddlcbf_locate(&lookup_, hash, address);
    const sieve_line* const line[SIEVE_DLEFT_MAX_SUBTABLES] = {
        &lines_[address[0].line], &lines_[address[1].line], &lines_[address[2].line],
        &lines_[address[3].line]};
    return sieve_ddlcbf_test(&lookup_, line, address) != 0;
}

Status DdlcbfFilter::insert(const sieve_hash& hash) {
    sieve_ddlcbf_address address[SIEVE_DLEFT_MAX_SUBTABLES] = {};
    sieve_ddlcbf_locate(&lookup_, hash, address);
    const auto full = [] {
        return bad_input("the key's buckets are full: build a larger filter, or delete keys first");
    };
    // If a bucket holds keys with the same minimal remainder, this key must go there, too. Otherwise it goes
    // to the least loaded bucket, the leftmost of several. (Another rule was tried: go where the rate grows
    // least, and spare buckets whose remainders would have to shrink. Loads then become uneven, and after
    // twenty exchanges a key the rate is 1.3 to 1.8 times as high.)
    std::array<CountingBucket, SIEVE_DLEFT_MAX_SUBTABLES> buckets;
    std::uint32_t best = 0;
    for (std::uint32_t i = 0; i < shape_.subtables; i++) {
        buckets[i] = read(address[i]);
        if (buckets[i].has_minimal(address[i].remainder, bucket_)) {
            if (!buckets[i].insert(address[i].remainder, bucket_)) return full();
            write(address[i], buckets[i]);
            return {};
        }
        if (buckets[i].load() < buckets[best].load()) best = i;
    }
    if (!buckets[best].insert(address[best].remainder, bucket_)) return full();
    write(address[best], buckets[best]);
    return {};
}

Status DdlcbfFilter::erase(const sieve_hash& hash) {
    sieve_ddlcbf_address address[SIEVE_DLEFT_MAX_SUBTABLES] = {};
    sieve_ddlcbf_locate(&lookup_, hash, address);
    for (std::uint32_t i = 0; i < shape_.subtables; i++) {
        CountingBucket bucket = read(address[i]);
        if (!bucket.erase(address[i].remainder)) continue;
        write(address[i], bucket);
        return {};
    }
    return bad_input("the key is not in the filter");
}

double DdlcbfFilter::expected_fpr() const {
    double absent = 1;
    for (std::uint32_t i = 0; i < shape_.subtables; i++) {
        double sum = 0;
        for (const sieve_line& line : lines_.subspan(std::uint64_t{i} * lookup_.buckets, lookup_.buckets))
            for (const std::uint64_t word : line.word) sum += decode_counting_bucket(word, bucket_).rate();
        absent *= 1 - sum / (8.0 * lookup_.buckets);
    }
    return 1 - absent;
}

DdlcbfFilter::Fill DdlcbfFilter::fill() const {
    Fill fill;
    for (const sieve_line& line : lines_)
        for (const std::uint64_t word : line.word) {
            const CountingBucket bucket = decode_counting_bucket(word, bucket_);
            fill.loads[bucket.load()]++;
            fill.maxima[bucket.maximum()]++;
            for (std::uint32_t i = 0; i < bucket.load(); i++) fill.keys += bucket.cell(i).keys;
        }
    return fill;
}

} // namespace sieve
