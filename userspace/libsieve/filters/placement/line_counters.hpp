// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Counting lines: they count how many keys set each bit of a 512-bit line, so that a key can be removed
// again.
#pragma once

#include "libsieve/filters/placement/wide_line.hpp"

namespace sieve {

// 512 counters of three bits, bit-sliced: plane p holds bit p of all counters. A handful of vector operations
// adds or removes a pattern, whatever its number of bits. A counter that reaches 7 stays at 7, and its bit is
// never cleared. This costs a little accuracy but never loses a key.
//
// Fan, Cao, Almeida and Broder (counting Bloom filter, 2000) find that four bits suffice for the largest
// counter of a whole table. Three bits suffice here: filters are built with k n / m of about one at most, and
// then only one bit in 10^5 is shared by seven or more keys. Such a bit would hardly ever have been cleared
// anyway.
struct LineCounters {
    static constexpr int limit = 7;
    WideLine plane[3];

    SIEVE_ALWAYS_INLINE void add(const WideLine& pattern) {
        const WideLine bits = pattern & ~(plane[0] & plane[1] & plane[2]); // 7 + 1 stays 7
        const WideLine carry = plane[0] & bits;
        plane[2] ^= plane[1] & carry;
        plane[1] ^= carry;
        plane[0] ^= bits;
    }

    // The pattern must have been added before.
    SIEVE_ALWAYS_INLINE void remove(const WideLine& pattern) {
        const WideLine bits = pattern & ~(plane[0] & plane[1] & plane[2]);
        const WideLine borrow = ~plane[0] & bits;
        plane[2] ^= ~plane[1] & borrow;
        plane[1] ^= borrow;
        plane[0] ^= bits;
    }

    // The bits that are set, that is, counted at least once.
    [[nodiscard]] SIEVE_ALWAYS_INLINE WideLine set() const { return plane[0] | plane[1] | plane[2]; }

    // The bits that remain set when the pattern is removed. The pattern must have been added before.
    [[nodiscard]] SIEVE_ALWAYS_INLINE WideLine set_without(const WideLine& pattern) const {
        const WideLine shared = plane[1] | plane[2];
        return shared | (plane[0] & ~pattern);
    }

    [[nodiscard]] SIEVE_ALWAYS_INLINE WideLine saturated() const { return plane[0] & plane[1] & plane[2]; }
};

} // namespace sieve
