// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/placement/sort_hashes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "libsieve/filters/placement/distinct_hashes.hpp"

namespace sieve {

namespace {

constexpr unsigned order_bits = 64; // of hash_order, before `test`
constexpr unsigned most_digit_bits = 11;
constexpr std::size_t few = 16; // hashes that are inserted one by one

void sort_few(std::span<sieve_hash> hashes) {
    for (std::size_t i = 1; i < hashes.size(); i++) {
        const sieve_hash hash = hashes[i];
        std::size_t at = i;
        for (; at > 0 && hash_order(hash, hashes[at - 1]); at--) hashes[at] = hashes[at - 1];
        hashes[at] = hash;
    }
}

} // namespace

// American flag sort (McIlroy, Bostic, McIlroy: Engineering Radix Sort, 1993): counts the digits, then moves
// each hash to its digit's range, along cycles.
void sort_hashes(std::span<sieve_hash> hashes, unsigned known) {
    if (hashes.size() <= few) return sort_few(hashes);
    if (known >= order_bits) { // the same `locate` everywhere
        std::sort(hashes.begin(), hashes.end(),
                  [](const sieve_hash& a, const sieve_hash& b) { return a.test < b.test; });
        return;
    }
    // Two to four hashes for each digit, so that most ranges are few.
    const auto wanted = static_cast<unsigned>(std::bit_width(hashes.size())) - 2;
    const unsigned bits = std::min({wanted, most_digit_bits, order_bits - known});
    const unsigned shift = order_bits - known - bits;
    const std::size_t digits = std::size_t{1} << bits;
    const auto digit_of = [&](const sieve_hash& hash) {
        return static_cast<std::size_t>(std::rotl(hash.locate, 32) >> shift) & (digits - 1);
    };
    std::array<std::uint32_t, (std::size_t{1} << most_digit_bits) + 1> end;
    std::array<std::uint32_t, std::size_t{1} << most_digit_bits> next;
    std::fill_n(end.begin(), digits + 1, 0);
    for (const sieve_hash& hash : hashes) end[digit_of(hash) + 1]++;
    for (std::size_t digit = 0; digit < digits; digit++) {
        next[digit] = end[digit];
        end[digit + 1] += end[digit];
    }
    // From here on, the range of a digit is end[digit] to end[digit + 1].
    for (std::size_t digit = 0; digit < digits; digit++)
        while (next[digit] < end[digit + 1]) {
            sieve_hash hash = hashes[next[digit]];
            for (std::size_t to; (to = digit_of(hash)) != digit;) std::swap(hash, hashes[next[to]++]);
            hashes[next[digit]++] = hash;
        }
    for (std::size_t digit = 0; digit < digits; digit++) {
        const std::uint32_t size = end[digit + 1] - end[digit];
        if (size > 1) sort_hashes(hashes.subspan(end[digit], size), known + bits);
    }
}

} // namespace sieve
