// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fills a d-left filter (sieve/dleft.h): decides which of its buckets each key takes, and reports how good
// the filter is. Source: the d-left paper (Allerton 2006), sections II-A to II-E.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libsieve/filters/kinds/dleft/dleft_bucket.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// Where rebalancing puts a key that has several least loaded buckets.
enum class DleftTies : std::uint8_t {
    random, // any of them: the search walks across plateaus, and further rounds keep paying off
    left,   // the leftmost, as at the first insertion
    stay,   // the key stays where it is
};

struct DleftOptions {
    // Rounds of offline rebalancing after the online pass; 0 leaves the filter as a stream of keys makes it.
    // The paper (section II-D) uses ten.
    std::uint32_t rounds = 16;
    DleftTies ties = DleftTies::random;
    // Places the keys in another order than theirs, by the lower half of `test`. Keys in hash_order are
    // sorted by their first bucket. If they were placed in this order without rebalancing, they would fill
    // one bucket after another, and the rate would be two to four times as high.
    bool scatter = false;
    // For ties; the same seed, keys (in the same order) and options give the same filter.
    std::uint64_t seed = 0;
};

struct DleftReport {
    std::uint32_t rounds = 0;     // rounds of rebalancing that were run
    std::uint64_t overflowed = 0; // buckets above the highest load that the counter can represent
    std::uint64_t always = 0;     // of these, buckets so full that they match everything
    // Number of buckets of each subtable by load. All rows have the same length: one element for each load
    // that occurs in any subtable.
    std::vector<std::vector<std::uint64_t>> loads;
};

// Fills `lines` (lookup.choices times lookup.buckets of them) with all keys.
//
// Online pass: each key goes into the least loaded of its buckets, ties to the left (Voecking's rule). Rounds
// of rebalancing follow: each key in turn is removed and inserted again. A bucket of load a costs a 2^-f(a),
// which grows ever faster with a because of f(a). The least loaded bucket is therefore also the one that adds
// least to the false positive rate.
//
// If two keys share a bucket and a fingerprint, both are kept. The paper allows to leave out the second. But
// this would require that the two also agree in the longer fingerprint that the bucket then has, and only
// about one key in 30,000 (64-bit) or in a million (128-bit) does. Leaving it out gains nothing.
//
// A bucket above the top load is marked and counted (see sieve/dleft.h); no key is lost. Errors: a shape that
// does not exist, lines that do not match the header, more than 255 keys in a bucket, a group of 64-bit
// buckets that cannot hold its keys. If the filter has several shards, the keys must be in hash_order. Memory
// for each shard under way: 9 bytes a key, 13 with `scatter`, and 6 a bucket.
Result<DleftReport> place_dleft(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                std::span<sieve_line> lines, const DleftOptions& options,
                                const Progress& progress);

// The same for shards `first` to `first + count - 1` (filters/placement/shards.hpp), with their keys only, in
// hash_order. `lines` are those of the whole filter. Shards are placed beside each other; they do not depend
// on each other.
Result<DleftReport> place_dleft_shards(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                       std::span<sieve_line> lines, std::uint32_t first, std::uint32_t count,
                                       const DleftOptions& options, const Progress& progress);

// The false positive rate over random keys, from the buckets: the mean over all fingerprints f of
// 1 - prod_i (1 - share of buckets of subtable i that hold f). Equal fingerprints in a bucket count once. All
// subtables are asked for one fingerprint, so that the product of their mean rates would be wrong for filters
// of few buckets at high rates. Fingerprints are told apart by their leading 8 bits, which suffices: with
// longer ones the rate is low, and product and sum are the same.
double expected_dleft_fpr(const sieve_lookup& lookup, std::span<const sieve_line> lines);

// The rate by formula (1) of the paper: a sum instead of the product, in which every fingerprint counts. This
// is an upper bound; the published rates are such bounds.
double union_bound_dleft_fpr(const sieve_lookup& lookup, std::span<const sieve_line> lines);

} // namespace sieve
