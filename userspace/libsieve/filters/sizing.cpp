// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/sizing.hpp"

#include <algorithm>
#include <cmath>

namespace sieve {

std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) {
    return std::max<std::uint64_t>(
        1, std::llround(std::ceil(static_cast<double>(keys) * bits_per_key / SIEVE_LINE_BITS)));
}

double bits_per_key_of(std::uint64_t keys, std::uint64_t lines) {
    return static_cast<double>(lines) * SIEVE_LINE_BITS / static_cast<double>(keys);
}

std::uint32_t witness_count(std::uint64_t keys) {
    return static_cast<std::uint32_t>(std::min(keys, std::clamp<std::uint64_t>(keys / 1024, 64, 1024)));
}

double rate_of_probes(double rate, std::uint32_t probes) {
    return -std::expm1(probes * std::log1p(-rate));
}

double rate_of_one_probe(double rate, std::uint32_t probes) {
    return -std::expm1(std::log1p(-rate) / probes);
}

} // namespace sieve
