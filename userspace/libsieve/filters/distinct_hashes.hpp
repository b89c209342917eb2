// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From keys to hashes, each once. From here on a key is its hash: two keys that agree in all 128 bits are one
// to a filter, too.
#pragma once

#include <sieve/hash.h>

#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/huge_array.hpp"

namespace sieve {

// The order of distinct_hashes: by the lower half of `locate` (which chooses a key's first line), the upper
// half, and `test`.
inline bool hash_order(const sieve_hash& a, const sieve_hash& b) {
    const auto major = [](const sieve_hash& hash) { return (hash.locate << 32) | (hash.locate >> 32); };
    return major(a) != major(b) ? major(a) < major(b) : a.test < b.test;
}

// The keys' hashes under `hash_key` (SIEVE_HASH_KEY_WORDS words), sorted, without repetitions. Keys are
// hashed twice, to be put into their place at once: 16 bytes a key are all it takes. Parallel; the result
// does not depend on the number of threads.
[[nodiscard]] HugeArray<sieve_hash> distinct_hashes(const KeySet& keys, const __u64* hash_key);

// The same of hashes.
[[nodiscard]] HugeArray<sieve_hash> distinct_hashes(HugeArray<sieve_hash> hashes);

} // namespace sieve
