// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kernel's own Bloom filter map and its best settings: bloom_map_alloc() in kernel/bpf/bloom_filter.c.
#pragma once

#include <cstdint>

namespace sieve::bench {

struct KernelBloom {
    std::uint32_t max_entries = 1;
    std::uint32_t hashes = 1;
    double fpr = 1; // of n keys in that many bits with that many independent hashes
    std::uint64_t bits = 0;
};

// As its manual says: max_entries is the number of keys; the fewest hashes that reach the rate, or, if none
// do, the best.
[[nodiscard]] KernelBloom kernel_bloom_plain(std::uint64_t keys, double fpr);

// The fewest bits that reach the rate, whatever max_entries that takes, and then the fewest hashes.
[[nodiscard]] KernelBloom kernel_bloom_tuned(std::uint64_t keys, double fpr);

// The power of two that is closest to `bits`, and the best number of hashes for it.
[[nodiscard]] KernelBloom kernel_bloom_of_bits(std::uint64_t keys, std::uint64_t bits);

} // namespace sieve::bench
