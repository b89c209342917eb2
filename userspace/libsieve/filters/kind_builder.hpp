// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The interface that sizes, predicts and fills a filter. Each kind implements it in its own directory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <sieve/image.h>

#include "libsieve/filters/effort.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

/// Instead of a kind: the list decides (settled_kind in build/set_builder.hpp).
inline constexpr sieve_kind automatic_kind = SIEVE_KIND_NONE;

/// What a user may choose about a filter. The kind picks its best value for everything else.
struct KindOptions {
    sieve_kind kind = SIEVE_KIND_BLOCKED;
    std::optional<std::uint32_t> choices{}; ///< KindFacts::choices says what they count
    std::optional<double> alpha{};          ///< share of keys that have a choice; some kinds only
    std::optional<std::uint32_t> hashes{};  ///< k; some kinds only
    Effort effort = Effort::normal;
    std::optional<std::uint32_t> rounds{}; ///< of rebalancing; the effort decides if not given
};

/// One kind together with its options.
class KindBuilder {
  public:
    virtual ~KindBuilder() = default;

    /// The fewest lines that this kind can use and that give each key at least `bits_per_key` bits. (d-left
    /// kinds use whole subtables only.)
    [[nodiscard]] virtual std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const = 0;
    /// The fewest lines for which predict_fpr is at most `fpr`, to within 1%. Error: the rate is out of
    /// reach.
    [[nodiscard]] virtual Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const = 0;
    /// How many of `lines` lines this kind can use; 0 if `lines` are too few.
    [[nodiscard]] virtual std::uint64_t usable_lines(std::uint64_t lines) const = 0;

    /// Sets kind, choices, hashes, buckets and alpha for a filter of `lines` lines. Error: a filter of that
    /// size cannot hold that many keys.
    [[nodiscard]] virtual Status describe(std::uint64_t keys, std::uint64_t lines,
                                          sieve_lookup& lookup) const = 0;

    /// The false positive rate by the papers' analysis, without rebalancing; empty if no paper has one.
    [[nodiscard]] virtual std::optional<double> model_fpr(std::uint64_t keys,
                                                          const sieve_lookup& lookup) const = 0;
    /// The false positive rate of the filter that fill() will make. Deterministic.
    [[nodiscard]] virtual double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const = 0;

    /// How many times the same key may be among those that fill() places: as often as the filter can count
    /// it; once if the kind does not count.
    [[nodiscard]] virtual std::uint32_t most_copies() const { return 1; }

    /// Fills `lines`, which must be zeroed, with all keys, which must be in hash_order and, up to
    /// most_copies(), distinct. Returns
    /// how many rounds of rebalancing were run. Runs in parallel if the kind can, within the caller's limit
    /// of threads.
    [[nodiscard]] virtual Result<std::uint32_t> fill(std::span<const sieve_hash> keys,
                                                     const sieve_lookup& lookup, std::span<sieve_line> lines,
                                                     std::uint64_t seed, const Progress& progress) const = 0;

    /// Does what fill() does for shards `first` to `first + count - 1` (filters/placement/shards.hpp), with
    /// their keys only. `lines` are those of the whole filter. All shards filled so, in any order or at the
    /// same time, make the filter that fill() makes. Error: the kind has no shards.
    [[nodiscard]] virtual Result<std::uint32_t> fill_shards(std::span<const sieve_hash> keys,
                                                            const sieve_lookup& lookup,
                                                            std::span<sieve_line> lines, std::uint32_t first,
                                                            std::uint32_t count, std::uint64_t seed) const {
        (void)keys, (void)lookup, (void)lines, (void)first, (void)count, (void)seed;
        return invalid_request("filters of this kind have no shards");
    }
};

} // namespace sieve
