// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/kernel_bloom.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sieve::bench {

namespace {

constexpr std::uint32_t most_hashes = 15; // map_extra has four bits for it
constexpr int most_bits_log2 = 32;

std::uint64_t bits_of(std::uint64_t max_entries, std::uint32_t hashes) {
    const std::uint64_t wanted = max_entries * hashes / 5 * 7; // the kernel uses 7/5 for 1/ln 2
    if (wanted > 1ULL << 31) return 1ULL << most_bits_log2;
    return std::bit_ceil(std::max<std::uint64_t>(wanted, 64));
}

double rate(std::uint64_t keys, std::uint64_t bits, std::uint32_t hashes) {
    const double fill =
        -std::expm1(-static_cast<double>(hashes) * static_cast<double>(keys) / static_cast<double>(bits));
    return std::pow(fill, hashes);
}

// The settings that make the kernel allocate exactly `bits` bits.
KernelBloom settings(std::uint64_t keys, std::uint64_t bits, std::uint32_t hashes) {
    std::uint64_t entries = std::max<std::uint64_t>(1, bits / 7 * 5 / hashes);
    while (bits_of(entries, hashes) > bits) entries--;
    return {static_cast<std::uint32_t>(entries), hashes, rate(keys, bits, hashes), bits};
}

} // namespace

KernelBloom kernel_bloom_plain(std::uint64_t keys, double fpr) {
    KernelBloom best;
    for (std::uint32_t hashes = 1; hashes <= most_hashes; hashes++) {
        const std::uint64_t bits = bits_of(keys, hashes);
        const double reached = rate(keys, bits, hashes);
        if (reached < best.fpr) best = {static_cast<std::uint32_t>(keys), hashes, reached, bits};
        if (best.fpr <= fpr) break;
    }
    return best;
}

KernelBloom kernel_bloom_tuned(std::uint64_t keys, double fpr) {
    for (int log = 6; log <= most_bits_log2; log++)
        for (std::uint32_t hashes = 1; hashes <= most_hashes; hashes++)
            if (rate(keys, 1ULL << log, hashes) <= fpr) return settings(keys, 1ULL << log, hashes);
    return kernel_bloom_of_bits(keys, 1ULL << most_bits_log2);
}

KernelBloom kernel_bloom_of_bits(std::uint64_t keys, std::uint64_t bits) {
    const int log =
        std::clamp(static_cast<int>(std::lround(std::log2(static_cast<double>(bits)))), 6, most_bits_log2);
    std::uint32_t best = 1;
    for (std::uint32_t hashes = 2; hashes <= most_hashes; hashes++)
        if (rate(keys, 1ULL << log, hashes) < rate(keys, 1ULL << log, best)) best = hashes;
    return settings(keys, 1ULL << log, best);
}

} // namespace sieve::bench
