// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Turns keys into an image: draws the secret, hashes, drops duplicates, chooses the geometry, places keys and
// measures. Refuses a filter that contradicts its own prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/build/exceptions.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kind_builder.hpp"
#include "libsieve/filters/prefixes/prefix_expansion.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

struct BuildOptions {
    // The size: at most one of these. If none is given, the kind's default size applies.
    std::optional<double> bits_per_key;
    std::optional<double> fpr;           // the smallest filter whose predicted rate is at most this
    std::optional<std::uint64_t> memory; // the largest filter whose whole image fits these bytes

    KindOptions kind;                       // the kind and its options
    const Kinds* kinds = &built_in_kinds(); // that there are; they must outlive the image
    PrefixLimits prefixes;                  // for sets of prefixes and ranges
    // Of a set that changes while it is in force: these probes, not those that fit its entries best. They
    // take each of the entries.
    std::optional<sieve_probes> probes;
    std::optional<std::uint64_t> seed; // for tests: makes the build reproducible and its secret known
    std::uint64_t trials = 1'000'000;  // random keys to measure the rate with
    std::uint32_t threads = 0;         // 0: one for each processor
    // The memory in bytes that a build's data may take (build/spilled_keys.hpp); nothing: what it needs.
    std::optional<std::uint64_t> memory_limit;
    Spare spare;               // kinds that list their keys: what they are to have room for
    std::string label;         // for people: the names of the feeds
    std::uint64_t skipped = 0; // feed lines that were skipped; stored in the image for `status`
};

struct BuildReport {
    std::uint64_t entries = 0;    // of the feed
    std::uint64_t keys = 0;       // distinct keys; for a prefix set, the stored prefixes; exact: ranges
    sieve_probes probes{};        // of a prefix set
    std::uint64_t duplicates = 0; // entries whose key an earlier entry had
    double bits_per_key = 0;      // of the filter's lines, without header and witnesses
    std::uint32_t rounds = 0;
    std::optional<double> model_fpr; // by the paper's analysis, without rebalancing; empty if there is none
    double predicted_fpr = 0;        // before the build
    double expected_fpr = 0;         // exactly, from the filter's bits
    double measured_fpr = 0;         // on random non-members
    std::uint64_t measured_hits = 0;
    std::uint64_t measured_trials = 0;
    std::uint64_t exceptions = 0; // prefixes and keys that must not match
    std::uint64_t excluded = 0;   // what they asked this filter; none of it matched
    std::uint64_t spared = 0;     // keys that were asked as well (Exceptions::spared)
    std::uint32_t tries = 1;      // filters that were built until none of these matched, and luck was not bad
};

struct BuiltSet {
    Image image;
    BuildReport report;
};

// The options with the kind of a list that is not to go to kind `exact` (build/default_kind.hpp), if they
// leave it to the list. Addresses with prefixes or ranges go to the kind of ranges, which is exact and takes
// any lengths, unless a size, a rate or an option of filters was chosen. All other lists go to the kind that
// choose_kind (filters/kinds/choice.hpp) chooses; with a memory limit to the first kind with shards, whether
// or not the list turns out to need it.
[[nodiscard]] BuildOptions settled_kind(BuildOptions options, bool has_address_ranges);

// Checks what can be checked of the options without keys: sizes that contradict each other, numbers out of
// range, options that the kind does not take. build_set() makes the same checks.
[[nodiscard]] Status check_build_options(const BuildOptions& options);

// Builds the filter and consumes the members, to keep memory low. If there are any ranges, the result is a
// prefix set (sieve/prefix.h). Its rates are those of all probes of a packet together, for the family that
// makes more of them. No exception matches the result, unless they are left to verification; none of them may
// be a member. Errors: no keys, an impossible size, a rate out of reach, a measurement that contradicts the
// prediction, exceptions that take too many tries. An exact kind takes addresses and ranges of them only; its
// size follows from the list, so bits per key are refused, and `memory` is the most that it may take.
Result<BuiltSet> build_set(Members members, const BuildOptions& options, const Progress& progress,
                           const Exceptions& exceptions = {});

// The same for keys alone, and for addresses and ranges of them.
Result<BuiltSet> build_set(KeySet keys, const BuildOptions& options, const Progress& progress);
Result<BuiltSet> build_set(KeySet keys, std::vector<AddressRange> ranges, const BuildOptions& options,
                           const Progress& progress);

} // namespace sieve
