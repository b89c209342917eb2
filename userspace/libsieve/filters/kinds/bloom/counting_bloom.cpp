// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/bloom/counting_bloom.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include <fmt/core.h>

namespace sieve {

namespace {

constexpr std::uint64_t low_bits = 0x1111111111111111; // the lowest bit of each counter of a word

// In the result, the lowest bit of each counter says whether all, or any, of the counter's four bits are set.
std::uint64_t all_of_each(std::uint64_t word) {
    return word & (word >> 1) & (word >> 2) & (word >> 3) & low_bits;
}
std::uint64_t any_of_each(std::uint64_t word) {
    return (word | (word >> 1) | (word >> 2) | (word >> 3)) & low_bits;
}

} // namespace

std::uint64_t NibbleCounters::saturated() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t word : words_)
        sum += static_cast<std::uint64_t>(std::popcount(all_of_each(word)));
    return sum;
}

std::uint64_t NibbleCounters::ones() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t word : words_)
        sum += static_cast<std::uint64_t>(std::popcount(any_of_each(word)));
    return sum;
}

void NibbleCounters::write(std::span<sieve_line> lines) const {
    assert(words_.size() >= lines.size() * SIEVE_LINE_BITS / 16);
    const std::uint64_t* counters = words_.data();
    for (sieve_line& line : lines)
        for (__u64& word : line.word) {
            word = 0;
            for (int from = 0; from < 64; from += 16, counters++)
                for (std::uint64_t any = any_of_each(*counters); any != 0; any &= any - 1)
                    word |= __u64{1} << (from + std::countr_zero(any) / 4);
        }
}

Result<CountingBloom> CountingBloom::create(std::uint32_t lines, std::uint32_t hashes) {
    if (!sieve_bloom_valid(1, hashes, lines))
        return invalid_request(fmt::format("{} lines and {} bits set by a key, expected 1 to {} and 1 to {}",
                                           lines, hashes, SIEVE_BLOOM_MAX_LINES, SIEVE_BLOOM_MAX_HASHES));
    return CountingBloom(lines, hashes);
}

// Calls visit(position) for each probe until visit returns false.
template <class Visit>
void CountingBloom::for_each_position(sieve_hash key, Visit visit) const {
    sieve_bloom_probe probe = sieve_bloom_first(key);
    for (std::uint32_t i = 0; i < hashes_; i++, sieve_bloom_advance(&probe))
        if (!visit(std::uint64_t{sieve_bloom_line(&probe, lines_)} * SIEVE_LINE_BITS +
                   sieve_bloom_bit(&probe)))
            return;
}

void CountingBloom::insert(sieve_hash key) {
    for_each_position(key, [this](std::uint64_t at) {
        counters_.increment(at);
        return true;
    });
}

Status CountingBloom::remove(sieve_hash key) {
    if (!contains(key)) return bad_input("a key that is not in the counting filter cannot be taken out");
    for_each_position(key, [this](std::uint64_t at) {
        counters_.decrement(at);
        return true;
    });
    return {};
}

bool CountingBloom::contains(sieve_hash key) const {
    bool all = true;
    for_each_position(key, [this, &all](std::uint64_t at) { return all = counters_[at] != 0; });
    return all;
}

double CountingBloom::fraction_of_ones() const {
    return static_cast<double>(counters_.ones()) / (static_cast<double>(lines_) * SIEVE_LINE_BITS);
}

} // namespace sieve
