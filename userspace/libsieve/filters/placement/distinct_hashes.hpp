// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Turns keys into hashes without repetitions. From here on a hash stands for its key: a filter cannot tell
// apart two keys whose 128 bits agree.
#pragma once

#include <sieve/hash.h>

#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/parallel/huge_array.hpp"

namespace sieve {

// The order of distinct_hashes: by the lower half of `locate` (which chooses a key's first line), then by its
// upper half, then by `test`.
inline bool hash_order(const sieve_hash& a, const sieve_hash& b) {
    const auto major = [](const sieve_hash& hash) { return (hash.locate << 32) | (hash.locate >> 32); };
    return major(a) != major(b) ? major(a) < major(b) : a.test < b.test;
}

// Returns the keys' hashes under `hash_key` (SIEVE_HASH_KEY_WORDS words), in hash_order and without
// repetitions. Each key is hashed twice: once to count, once to write the hash straight to its position. The
// function therefore needs only 16 bytes a key. It runs in parallel; the result does not depend on the number
// of threads.
[[nodiscard]] HugeArray<sieve_hash> distinct_hashes(const KeySet& keys, const __u64* hash_key);

// The same for keys that are hashed already.
[[nodiscard]] HugeArray<sieve_hash> distinct_hashes(HugeArray<sieve_hash> hashes);

} // namespace sieve
