// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keys to image: draws the secret, hashes, drops duplicates, chooses the geometry, places, measures, and
// refuses what contradicts its own prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/filters/kind_builder.hpp"
#include "libsieve/filters/prefix_expansion.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

struct BuildOptions {
    // How large: at most one of these; none means the kind's standard.
    std::optional<double> bits_per_key;
    std::optional<double> fpr;           // the smallest filter that is predicted to stay below
    std::optional<std::uint64_t> memory; // the largest filter that fits these bytes, as a whole image

    KindOptions kind;                  // which, and what may be chosen of it
    PrefixLimits prefixes;             // for sets of prefixes and ranges
    std::optional<std::uint64_t> seed; // for tests: the same image again, and no secret in it
    std::uint64_t trials = 1'000'000;  // random keys that the rate is measured with
    std::uint32_t threads = 0;         // 0: as many as processors
    std::string label;                 // for people: where the keys came from
    std::uint64_t skipped = 0;         // feed lines left out; kept in the image for `status`
};

struct BuildReport {
    std::uint64_t entries = 0;    // of the feed
    std::uint64_t keys = 0;       // distinct; of a prefix set the prefixes that are stored
    sieve_probes probes{};        // of a prefix set
    std::uint64_t duplicates = 0; // entries beyond the first of their key
    double bits_per_key = 0;      // of the filter's lines; header and witnesses not counted
    std::uint32_t rounds = 0;
    std::optional<double> model_fpr; // by the paper's analysis, without rebalancing; not every kind has one
    double predicted_fpr = 0;        // before the build
    double expected_fpr = 0;         // exactly, from the filter's bits
    double measured_fpr = 0;         // on random non-members
    std::uint64_t measured_hits = 0;
    std::uint64_t measured_trials = 0;
};

struct BuiltSet {
    Image image;
    BuildReport report;
};

// What is wrong with the options whatever the keys: sizes that contradict each other, numbers out of range,
// options that the kind does not take. build_set() refuses these, too.
[[nodiscard]] Status check_build_options(const BuildOptions& options);

// Builds the filter of the keys, which are consumed to keep the memory low. Errors: no keys, sizes
// that cannot be, a rate that cannot be reached, a measurement that contradicts the prediction.
Result<BuiltSet> build_set(KeySet keys, const BuildOptions& options, const Progress& progress);

// The same of addresses and ranges of them: if there are any ranges a prefix set (sieve/prefix.h), whose
// rates are those of all probes of a packet together, in the family that makes more of them. The keys' fields
// must be one address.
Result<BuiltSet> build_set(KeySet keys, std::vector<AddressRange> ranges, const BuildOptions& options,
                           const Progress& progress);

} // namespace sieve
