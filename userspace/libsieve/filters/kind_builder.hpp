// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// All kinds of filter behind one interface: sizing, prediction, placement, expectation. set_builder needs to
// know no more.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <sieve/image.h>

#include "libsieve/filters/effort.hpp"
#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

// What a person may choose of a filter; what is not chosen is the kind's best.
struct KindOptions {
    sieve_kind kind = SIEVE_KIND_BLOCKED;
    std::optional<std::uint32_t> choices; // blocked: lines; bloom: groups; d-left: subtables
    std::optional<double> alpha;          // blocked: share of keys that have a choice
    std::optional<std::uint32_t> hashes;  // blocked, bloom: k
    Effort effort = Effort::normal;
    std::optional<std::uint32_t> rounds; // of rebalancing; by the effort if not given
};

class KindBuilder {
  public:
    virtual ~KindBuilder() = default;

    // Lines for a size or a rate, as many as the kind can use of them (d-left: a multiple of its subtables).
    [[nodiscard]] virtual std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const;
    [[nodiscard]] virtual Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const = 0;
    // The most lines that are usable of so many.
    [[nodiscard]] virtual std::uint64_t usable_lines(std::uint64_t lines) const { return lines; }

    // Sets kind, choices, hashes, buckets and alpha for a filter of `lines` lines.
    [[nodiscard]] virtual Status describe(std::uint64_t keys, std::uint64_t lines,
                                          sieve_lookup& lookup) const = 0;

    // False positive rates before the build: by the papers' analysis, without rebalancing (nothing where
    // there is none), and as the builder will make it.
    [[nodiscard]] virtual std::optional<double> model_fpr(std::uint64_t keys,
                                                          const sieve_lookup& lookup) const = 0;
    [[nodiscard]] virtual double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const = 0;

    // Fills `lines`, zeroed, with all keys, which are distinct. Returns the rounds of rebalancing that were
    // run. Parallel, where the kind can be, within the caller's limit of threads.
    [[nodiscard]] virtual Result<std::uint32_t> place(std::span<const sieve_hash> keys,
                                                      const sieve_lookup& lookup, std::span<sieve_line> lines,
                                                      std::uint64_t seed, const Progress& progress) const = 0;
};

// The kind's builder, or a usage error about the options.
Result<std::unique_ptr<KindBuilder>> kind_builder(const KindOptions& options);

// The exact false positive rate of one query over random hashes, from the filter's bits. `keys` is what it
// holds.
double expected_query_rate(const sieve_lookup& lookup, std::span<const sieve_line> lines, std::uint64_t keys);

// The geometry in words: "13 bits set by a key, 2 lines to choose from".
std::string describe_geometry(const sieve_lookup& lookup);

// What the model of model_fpr is called: which paper and equation.
const char* model_name(std::uint32_t kind);

} // namespace sieve
