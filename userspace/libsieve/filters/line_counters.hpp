// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Counting lines: how many keys set each bit of a 512-bit line, so that a key can be taken out again.
#pragma once

#include "libsieve/filters/wide_line.hpp"

namespace sieve {

// 512 counters of three bits, bit-sliced: plane p holds bit p of all of them. A pattern is added or taken out
// with a handful of vector operations, whatever its number of bits. A counter that reaches 7 stays there for
// ever: its bit is never cleared, which costs a little accuracy and can never lose a key. (Counting Bloom
// filter: Fan, Cao, Almeida, Broder 2000, who find four bits enough for a whole table's maximum. At the k n /
// m of at most about one that filters are built with, seven or more keys share one bit in 10^5, and such a
// bit would hardly have been cleared anyway.)
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

    // The bits that are set once the pattern, which was added before, is gone.
    [[nodiscard]] SIEVE_ALWAYS_INLINE WideLine set_without(const WideLine& pattern) const {
        const WideLine shared = plane[1] | plane[2];
        return shared | (plane[0] & ~pattern);
    }

    [[nodiscard]] SIEVE_ALWAYS_INLINE WideLine saturated() const { return plane[0] & plane[1] & plane[2]; }
};

} // namespace sieve
