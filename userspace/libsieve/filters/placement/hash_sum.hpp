// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells one list of keys from another without its keys: the sum of their hashes.
#pragma once

#include <cstdint>
#include <span>

#include <sieve/hash.h>

namespace sieve {

// The sums of both words of distinct hashes, modulo 2^64. They depend on no order, so parts of a list are
// summed on their own. Whoever does not know the hash keys finds two lists of the same sums with a chance of
// about 2^-64: that of two keys with the same hash (sieve/hash.h), which no filter tells apart either.
struct HashSum {
    std::uint64_t locate = 0;
    std::uint64_t test = 0;

    HashSum& operator+=(const HashSum& other) {
        locate += other.locate;
        test += other.test;
        return *this;
    }
    HashSum& operator-=(const HashSum& other) {
        locate -= other.locate;
        test -= other.test;
        return *this;
    }
    [[nodiscard]] friend bool operator==(const HashSum&, const HashSum&) = default;
};

[[nodiscard]] inline HashSum sum_of(std::span<const sieve_hash> distinct) {
    HashSum sum;
    for (const sieve_hash& hash : distinct) sum += {.locate = hash.locate, .test = hash.test};
    return sum;
}

} // namespace sieve
