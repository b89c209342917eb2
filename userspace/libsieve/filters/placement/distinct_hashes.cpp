// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/placement/distinct_hashes.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "libsieve/filters/placement/sort_hashes.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/parallel/parallel_sort.hpp"

namespace sieve {

namespace {

// Keys are counted and written in this many portions, one thread for each.
constexpr std::size_t portions = 16;

// Hashes that are sorted together should fit into the first- or second-level cache. The CPU can write to 2^13
// buckets at a time without many cache misses, but hardly to more.
constexpr std::size_t bucket_keys = 2048;
constexpr unsigned most_bucket_bits = 13;

bool same(const sieve_hash& a, const sieve_hash& b) {
    return a.locate == b.locate && a.test == b.test;
}

} // namespace

HugeArray<sieve_hash> distinct_hashes(const KeySet& keys, const __u64* hash_key) {
    const std::size_t n = keys.size();
    const std::uint32_t fields = keys.fields();
    const unsigned bits = std::min<unsigned>(most_bucket_bits, std::bit_width(n / bucket_keys));
    const std::size_t buckets = std::size_t{1} << bits;
    const auto for_each_hash = [&](std::size_t portion, auto&& visit) {
        keys.for_each(n * portion / portions, n * (portion + 1) / portions, [&](const sieve_key& key) {
            const sieve_hash hash = sieve_hash_key(&key, hash_key, fields);
            visit(hash, static_cast<std::size_t>((hash.locate & 0xffffffff) >> (32 - bits)));
        });
    };

    std::vector<std::vector<std::size_t>> place(portions, std::vector<std::size_t>(buckets));
    for_each_index(portions, [&](std::size_t portion) {
        auto& counts = place[portion];
        for_each_hash(portion, [&](const sieve_hash&, std::size_t bucket) { counts[bucket]++; });
    });
    std::vector<std::size_t> begin(buckets + 1);
    std::size_t total = 0;
    for (std::size_t bucket = 0; bucket < buckets; bucket++) {
        begin[bucket] = total;
        for (auto& counts : place) total += std::exchange(counts[bucket], total);
    }
    begin[buckets] = total;

    HugeArray<sieve_hash> hashes(n);
    for_each_index(portions, [&](std::size_t portion) {
        auto& at = place[portion];
        for_each_hash(portion,
                      [&](const sieve_hash& hash, std::size_t bucket) { hashes[at[bucket]++] = hash; });
    });

    std::vector<std::size_t> end(buckets);
    for_each_index(buckets, [&](std::size_t bucket) {
        sieve_hash* first = hashes.begin() + begin[bucket];
        sieve_hash* last = hashes.begin() + begin[bucket + 1];
        sort_hashes({first, last}, bits);
        end[bucket] = static_cast<std::size_t>(std::unique(first, last, same) - hashes.begin());
    });
    sieve_hash* out = hashes.begin();
    for (std::size_t bucket = 0; bucket < buckets; bucket++)
        out = std::move(hashes.begin() + begin[bucket], hashes.begin() + end[bucket], out);
    hashes.truncate(static_cast<std::size_t>(out - hashes.begin()));
    return hashes;
}

HugeArray<sieve_hash> distinct_hashes(HugeArray<sieve_hash> hashes) {
    sort_in_parallel(hashes.begin(), hashes.end(), hash_order);
    hashes.truncate(
        static_cast<std::size_t>(std::unique(hashes.begin(), hashes.end(), same) - hashes.begin()));
    return hashes;
}

} // namespace sieve
