// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Counting lines: how many keys set each bit of a 512-bit line, so that a key can be taken out again.
#pragma once

#include <bit>
#include <cstdint>

#include <sieve/image.h>

namespace sieve {

// 512 counters of four bits, bit-sliced: plane p holds bit p of all of them. A pattern is added or taken out
// with a handful of word operations, whatever its number of bits. A counter that reaches 15 stays there for
// ever: its bit is never cleared, which costs a little accuracy and can never lose a key. (Counting Bloom
// filter: Fan, Cao, Almeida, Broder 2000, who show that four bits suffice.)
struct LineCounters {
    static constexpr int planes = 4;
    std::uint64_t plane[planes][SIEVE_LINE_WORDS];

    void add(const sieve_line& pattern) {
        for (int w = 0; w < SIEVE_LINE_WORDS; w++) {
            std::uint64_t carry = pattern.word[w];
            for (auto& p : plane) {
                const std::uint64_t next = p[w] & carry;
                p[w] ^= carry;
                carry = next;
            }
            for (auto& p : plane) p[w] |= carry; // 15 + 1 stays 15
        }
    }

    // The pattern must have been added before.
    void remove(const sieve_line& pattern) {
        for (int w = 0; w < SIEVE_LINE_WORDS; w++) {
            std::uint64_t saturated = ~std::uint64_t{0};
            for (const auto& p : plane) saturated &= p[w];
            std::uint64_t borrow = pattern.word[w] & ~saturated;
            for (auto& p : plane) {
                const std::uint64_t next = ~p[w] & borrow;
                p[w] ^= borrow;
                borrow = next;
            }
        }
    }

    // The bits that are set, that is, counted at least once.
    [[nodiscard]] std::uint64_t set(int word) const {
        std::uint64_t any = 0;
        for (const auto& p : plane) any |= p[word];
        return any;
    }
};

} // namespace sieve
