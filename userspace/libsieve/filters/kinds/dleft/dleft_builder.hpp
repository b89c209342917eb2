// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keys into a d-left filter (sieve/dleft.h): which of its buckets each key is put into, and how good the
// filter is then. Source: the d-left paper (Allerton 2006), sections II-A to II-E.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libsieve/filters/kinds/dleft/dleft_bucket.hpp"
#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

// Where a key goes that has several least loaded buckets when it is placed anew.
enum class DleftTies : std::uint8_t {
    random, // any of them: the plateaus are walked over, and more rounds go on paying
    left,   // the leftmost, as at the first insertion
    stay,   // where it is
};

struct DleftOptions {
    // Rounds of offline balancing after the online pass; 0 leaves the filter as a stream of keys makes it.
    // The paper (section II-D) does ten.
    std::uint32_t rounds = 16;
    DleftTies ties = DleftTies::random;
    // For ties; the same seed, keys (in the same order) and options give the same filter.
    std::uint64_t seed = 0;
};

struct DleftReport {
    std::uint32_t rounds = 0;     // rounds of balancing that were run
    std::uint64_t overflowed = 0; // buckets above the load that the counter can tell
    std::uint64_t always = 0;     // of these, buckets so full that they match everything
    // Buckets of each subtable by load; all rows are of the same length. An element for each load that
    // occurs.
    std::vector<std::vector<std::uint64_t>> loads;
};

// Fills `lines` (lookup.choices times lookup.buckets of them) with all keys.
//
// Online: each key goes into the least loaded of its buckets, ties to the left (Voecking's rule). Then rounds
// of balancing: each key in turn is taken out and placed anew. Since f(a) makes the cost a 2^-f(a) of a
// bucket grow ever faster with its load a, the least loaded bucket is also the one that adds least to the
// false positive rate.
//
// Keys that share a bucket and a fingerprint are both kept. The paper allows to leave out the second, but it
// may be left out only if the two agree in the longer fingerprint that the bucket then has, which happens to
// about one key in 30,000 (64-bit) or in a million (128-bit): nothing gained.
//
// A bucket above the top load is marked and counted (see sieve/dleft.h), no key is lost. Errors: a shape that
// does not exist, lines that do not match the header, more than 255 keys in a bucket, a group of 64-bit
// buckets that cannot hold its keys. Memory: a byte a key, a byte a bucket, 128 MiB.
Result<DleftReport> place_dleft(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                std::span<sieve_line> lines, const DleftOptions& options,
                                const Progress& progress);

// The same for keys in hash_order. In that order they come sorted by their first bucket; placed for good,
// they would fill one bucket after the other instead of all together, for two to four times the rate. So they
// are put in another order first if there are no rounds of balancing. Memory: 16 bytes a key more then.
Result<DleftReport> fill_dleft(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                               std::span<sieve_line> lines, const DleftOptions& options,
                               const Progress& progress);

// The exact false positive rate over random keys, from the buckets: 1 - prod_i (1 - mean rate of a bucket of
// subtable i), equal fingerprints of a bucket counted once.
double expected_dleft_fpr(const sieve_lookup& lookup, std::span<const sieve_line> lines);

// The same by formula (1) of the paper, the sum instead of the product and every fingerprint counted: an
// upper bound, which is what the published rates are.
double union_bound_dleft_fpr(const sieve_lookup& lookup, std::span<const sieve_line> lines);

} // namespace sieve
