// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Everything that user space knows about one kind of filter. A kind is a class derived from FilterKind in its
// own directory (filters/kinds/NAME), plus a line in SIEVE_KINDS (sieve/image.h). docs/adding-a-kind.md is
// the guide. Code that lists kinds, or asks one of them, goes through the registry
// (filters/kinds/registry.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sieve/image.h>

#include "libsieve/filters/kind_builder.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

/// What `choices` counts, in an image's header and in KindOptions.
struct Choices {
    const char* one;  ///< "group"
    const char* many; ///< "groups"
    std::uint32_t least;
    std::uint32_t most;
    std::uint32_t standard; ///< if nobody chooses
};

/// What a plan (filters/kinds/plan.hpp) says of a kind in its standard form. The numbers hardly depend on the
/// number of keys and on the size, so they stand here and no list waits for a plan; a test compares them with
/// plans, at 16 bits per key or at the kind's own size.
struct KindFigures {
    double excess_bits = 0; ///< bits per key above log2(1 / rate), the least that any filter needs
    double lines = 0;       ///< cache lines that a packet touches
    /// Down to this rate the figures hold. For a lower one a filter of this kind is much larger, takes very
    /// long to build, or is not possible.
    double least_rate = 0;
};

/// What is fixed about a kind, for help texts, checks of options, and benchmarks.
struct KindFacts {
    sieve_kind number;
    const char* name;    ///< as `build --kind` takes it
    const char* summary; ///< what it is good for, in half a sentence
    Choices choices;
    double bits_per_key = 16;       ///< the default size; means nothing for exact kinds
    double least_bits_per_key = 1;  ///< with fewer, some keys may not fit
    bool takes_alpha = false;       ///< KindOptions::alpha
    bool takes_hashes = false;      ///< KindOptions::hashes; the header's `hashes` is then k
    bool has_shards = false;        ///< all lines of a key are in one shard (filters/placement/shards.hpp)
    bool has_marks = false;         ///< keys can have hit marks; the header's `shard_bits` says so
    bool changes_live = false;      ///< keys can be inserted and deleted one by one while it is in force
    bool rebalances_slowly = false; ///< each round takes a microsecond a key or more on one processor
    const char* model = "";         ///< the paper and the equation of KindBuilder::model_fpr
    KindFigures figures{};          ///< mean nothing for exact kinds, which nobody chooses by them
};

/// Cache lines that a packet touches, on average.
struct LinesTouched {
    double non_member = 0; ///< a packet that does not match
    double member = 0;     ///< a packet that matches
};

/// A filter in which single keys can be inserted and deleted. It lies in memory or in a running program's
/// map. Packets may be looked up during a change: every lookup finds all keys that are not being changed. One
/// writer at a time.
class ChangeableFilter {
  public:
    virtual ~ChangeableFilter() = default;

    [[nodiscard]] virtual bool contains(const sieve_hash& hash) const = 0;
    /// Adds a key (once more, if the filter holds it already). Error: there is no room for the key; nothing
    /// has changed.
    virtual Status insert(const sieve_hash& hash) = 0;
    /// Deletes a key that was inserted. Error: the filter does not contain the key; nothing has changed.
    virtual Status erase(const sieve_hash& hash) = 0;
    /// The exact false positive rate over random keys.
    [[nodiscard]] virtual double expected_fpr() const = 0;
};

class ExactKind;

class FilterKind {
  public:
    constexpr explicit FilterKind(const KindFacts& facts) : facts_(facts) {}
    constexpr virtual ~FilterKind() = default;
    FilterKind(const FilterKind&) = delete;
    FilterKind& operator=(const FilterKind&) = delete;

    [[nodiscard]] constexpr const KindFacts& facts() const { return facts_; }

    // --- an existing filter, in an image or a map, described by its header (line 0) ------------------------

    /// Says what is wrong with the kind's own fields of the header; empty if nothing is. The registry's
    /// geometry_fault checks the fields that all kinds share. The functions below need a header without a
    /// fault.
    [[nodiscard]] virtual std::string geometry_fault(const sieve_lookup& lookup) const = 0;

    /// The number of lines in the filter.
    [[nodiscard]] virtual std::uint64_t lines(const sieve_lookup& lookup) const = 0;

    /// Whether the filter holds the key with this hash. Runs locate, fetch and test of the shared header;
    /// fetch reads memory.
    [[nodiscard]] virtual bool holds(const sieve_lookup& lookup, const sieve_hash& hash,
                                     const sieve_line* filter) const = 0;

    /// The exact false positive rate of one query over random hashes, from the filter's bits. `keys` is the
    /// number of keys in the filter.
    [[nodiscard]] virtual double expected_rate(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                               std::uint64_t keys) const = 0;

    /// Likewise for each of `parts` equal parts of the hashes: those that are looked up in one part of the
    /// lines, in each subtable if there are some. For the scatter of the rate. At least `parts` buckets.
    [[nodiscard]] virtual std::vector<double> expected_rates(const sieve_lookup& lookup,
                                                             std::span<const sieve_line> filter,
                                                             std::uint64_t keys, std::uint32_t parts) const;

    /// The geometry in words: "13 bits set by a key, 2 lines to choose from".
    [[nodiscard]] virtual std::string geometry(const sieve_lookup& lookup) const = 0;

    /// The geometry in short, for a table: "2 choices, k = 13".
    [[nodiscard]] virtual std::string parameters(const sieve_lookup& lookup, std::uint64_t keys) const = 0;

    /// Cache lines that a packet touches in a filter with this false positive rate.
    [[nodiscard]] virtual LinesTouched lines_touched(const sieve_lookup& lookup, double fpr) const = 0;

    /// Opens the filter for changes. `lines` must stay where they are. Error: filters of this kind cannot be
    /// changed, or the header and the lines do not belong together.
    [[nodiscard]] virtual Result<std::unique_ptr<ChangeableFilter>>
    open_for_change(const sieve_lookup& lookup, std::span<sieve_line> lines) const;

    // --- building a filter --------------------------------------------------------------------------------

    /// The rounds of rebalancing that an effort is worth, found by measurement (docs/performance.md).
    [[nodiscard]] virtual std::uint32_t rounds(Effort effort, std::uint32_t choices) const = 0;

    /// The builder for these options. The registry has checked the options that all kinds share. Error: an
    /// impossible value of one of the kind's own options.
    [[nodiscard]] virtual Result<std::unique_ptr<KindBuilder>> builder(const KindOptions& options) const = 0;

    /// The forms of this kind that are worth comparing with other kinds, for plans and benchmarks.
    [[nodiscard]] virtual std::vector<KindOptions> forms() const;

    /// This kind, if it is exact (filters/exact_kind.hpp): then it is asked for keys, not hashes, and built
    /// from addresses. Null for all others.
    [[nodiscard]] virtual const ExactKind* exact() const { return nullptr; }

    /// The requested number of choices, or the kind's standard.
    [[nodiscard]] std::uint32_t choices_of(const KindOptions& options) const {
        return options.choices.value_or(facts_.choices.standard);
    }
    /// The requested rounds, or those of the effort.
    [[nodiscard]] std::uint32_t rounds_of(const KindOptions& options) const {
        return options.rounds.value_or(rounds(options.effort, choices_of(options)));
    }
    /// "2 choices", "1 group".
    [[nodiscard]] std::string count_choices(std::uint32_t count) const;

  private:
    KindFacts facts_;
};

} // namespace sieve
