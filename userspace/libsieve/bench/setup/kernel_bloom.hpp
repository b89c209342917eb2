// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kernel's Bloom filter map (bloom_map_alloc() in kernel/bpf/bloom_filter.c) and its best settings.
#pragma once

#include <cstdint>

namespace sieve::bench {

struct KernelBloom {
    std::uint32_t max_entries = 1;
    std::uint32_t hashes = 1;
    double fpr = 1; // of `keys` keys in `bits` bits, with independent hashes
    std::uint64_t bits = 0;
};

// The settings by the map's manual: max_entries is the number of keys. Takes the fewest hashes that reach the
// rate, or the best number if none does.
[[nodiscard]] KernelBloom kernel_bloom_plain(std::uint64_t keys, double fpr);

// The fewest bits that reach the rate, with any max_entries; then the fewest hashes.
[[nodiscard]] KernelBloom kernel_bloom_tuned(std::uint64_t keys, double fpr);

// The power of two that is closest to `bits`, and the best number of hashes for it.
[[nodiscard]] KernelBloom kernel_bloom_of_bits(std::uint64_t keys, std::uint64_t bits);

} // namespace sieve::bench
