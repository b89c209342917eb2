// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How a filter of any kind is sized, predicted and filled. Each kind's room implements it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <sieve/image.h>

#include "libsieve/filters/effort.hpp"
#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

/// What a person may choose of a filter; what is not chosen is the kind's best.
struct KindOptions {
    sieve_kind kind = SIEVE_KIND_BLOCKED;
    std::optional<std::uint32_t> choices{}; ///< what they count: KindFacts::choices
    std::optional<double> alpha{};          ///< share of keys that have a choice, of kinds that take it
    std::optional<std::uint32_t> hashes{};  ///< k, of kinds that take it
    Effort effort = Effort::normal;
    std::optional<std::uint32_t> rounds{}; ///< of rebalancing; by the effort if not given
};

/// One kind with its options settled on.
class KindBuilder {
  public:
    virtual ~KindBuilder() = default;

    /// The fewest lines that this kind can use and that give each key at least that many bits. (d-left kinds
    /// use whole subtables only.)
    [[nodiscard]] virtual std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const = 0;
    /// The fewest lines for which predict_fpr is at most `fpr`, to within 1%. Error: the rate is out of
    /// reach.
    [[nodiscard]] virtual Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const = 0;
    /// The most lines that this kind can use of so many; none if these are too few.
    [[nodiscard]] virtual std::uint64_t usable_lines(std::uint64_t lines) const = 0;

    /// Sets kind, choices, hashes, buckets and alpha for a filter of `lines` lines. Error: a filter of that
    /// size cannot hold so many keys.
    [[nodiscard]] virtual Status describe(std::uint64_t keys, std::uint64_t lines,
                                          sieve_lookup& lookup) const = 0;

    /// False positive rate by the papers' analysis, without rebalancing; nothing where there is none.
    [[nodiscard]] virtual std::optional<double> model_fpr(std::uint64_t keys,
                                                          const sieve_lookup& lookup) const = 0;
    /// False positive rate of the filter that fill() will make. Deterministic.
    [[nodiscard]] virtual double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const = 0;

    /// Fills `lines`, zeroed, with all keys, which are distinct and in hash_order. Returns the rounds of
    /// rebalancing that were run. Parallel, where the kind can be, within the caller's limit of threads.
    [[nodiscard]] virtual Result<std::uint32_t> fill(std::span<const sieve_hash> keys,
                                                     const sieve_lookup& lookup, std::span<sieve_line> lines,
                                                     std::uint64_t seed, const Progress& progress) const = 0;
};

} // namespace sieve
