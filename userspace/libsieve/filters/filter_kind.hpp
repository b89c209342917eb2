// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// All that user space knows about one kind of filter. A kind is a class derived from FilterKind in a room of
// its own (filters/kinds/NAME) and a line in SIEVE_KINDS (sieve/image.h); docs/adding-a-kind.md is the guide.
// Whoever lists kinds, or asks one of them, goes through the registry (filters/kinds/registry.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sieve/image.h>

#include "libsieve/filters/kind_builder.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

/// What `choices` counts, in an image's header and in KindOptions.
struct Choices {
    const char* one;  ///< "group"
    const char* many; ///< "groups"
    std::uint32_t least;
    std::uint32_t most;
    std::uint32_t standard; ///< if nobody chooses
};

/// What is fixed about a kind, for help texts, checks of options, and benchmarks.
struct KindFacts {
    sieve_kind number;
    const char* name;    ///< as `build --kind` takes it
    const char* summary; ///< what it is good for, in half a sentence
    Choices choices;
    double bits_per_key = 16;       ///< if nobody chooses a size
    double least_bits_per_key = 1;  ///< with fewer, keys may find no room
    bool takes_alpha = false;       ///< KindOptions::alpha
    bool takes_hashes = false;      ///< KindOptions::hashes; the header's `hashes` is then k
    bool takes_prefixes = false;    ///< holds prefixes and ranges, too
    bool changes_live = false;      ///< keys go in and out while packets are looked up
    bool rebalances_slowly = false; ///< a microsecond a key and more for each round, on one processor
    const char* model = "";         ///< which equation of which paper KindBuilder::model_fpr is
};

/// Cache lines that a packet touches, on average.
struct LinesTouched {
    double non_member = 0; ///< a packet that does not match
    double member = 0;     ///< one that does
};

/// A filter, in memory or in a running program's map, that takes single keys in and out. Packets may be
/// looked up meanwhile, and see every other key at every moment. One writer at a time.
class ChangeableFilter {
  public:
    virtual ~ChangeableFilter() = default;

    [[nodiscard]] virtual bool contains(const sieve_hash& hash) const = 0;
    /// Adds a key (once more, if it is there). Error, nothing changed: there is no room for it.
    virtual Status insert(const sieve_hash& hash) = 0;
    /// Takes out a key that was inserted. Error, nothing changed: the filter does not contain it.
    virtual Status erase(const sieve_hash& hash) = 0;
    /// The exact false positive rate over random keys.
    [[nodiscard]] virtual double expected_fpr() const = 0;
};

class FilterKind {
  public:
    constexpr explicit FilterKind(const KindFacts& facts) : facts_(facts) {}
    constexpr virtual ~FilterKind() = default;
    FilterKind(const FilterKind&) = delete;
    FilterKind& operator=(const FilterKind&) = delete;

    [[nodiscard]] constexpr const KindFacts& facts() const { return facts_; }

    // --- a filter that is there: of an image or a map, by its header (line 0) ------------------------------

    /// What is wrong with the kind's own fields of the header; empty if nothing is. (What all kinds have in
    /// common is checked by the registry's geometry_fault.) The functions below need a header without fault.
    [[nodiscard]] virtual std::string geometry_fault(const sieve_lookup& lookup) const = 0;

    /// Lines of the filter.
    [[nodiscard]] virtual std::uint64_t lines(const sieve_lookup& lookup) const = 0;

    /// Whether the filter holds the key of this hash: locate, fetch and test of the shared header, fetching
    /// from memory.
    [[nodiscard]] virtual bool holds(const sieve_lookup& lookup, const sieve_hash& hash,
                                     const sieve_line* filter) const = 0;

    /// The exact false positive rate of one query over random hashes, from the filter's bits. `keys` is what
    /// the filter holds.
    [[nodiscard]] virtual double expected_rate(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                               std::uint64_t keys) const = 0;

    /// The geometry in words: "13 bits set by a key, 2 lines to choose from".
    [[nodiscard]] virtual std::string geometry(const sieve_lookup& lookup) const = 0;

    /// The same in short, for a table: "2 choices, k = 13".
    [[nodiscard]] virtual std::string parameters(const sieve_lookup& lookup, std::uint64_t keys) const = 0;

    /// Cache lines that a packet touches in a filter of that false positive rate.
    [[nodiscard]] virtual LinesTouched lines_touched(const sieve_lookup& lookup, double fpr) const = 0;

    /// The filter for changes; `lines` stay where they are. Error: not this kind, or a header and lines that
    /// do not belong together.
    [[nodiscard]] virtual Result<std::unique_ptr<ChangeableFilter>>
    open_for_change(const sieve_lookup& lookup, std::span<sieve_line> lines) const;

    // --- a filter to be built
    // -------------------------------------------------------------------------------

    /// Rounds of rebalancing that an effort is worth, measured (docs/performance.md).
    [[nodiscard]] virtual std::uint32_t rounds(Effort effort, std::uint32_t choices) const = 0;

    /// The builder for these options, which common_fault has found nothing wrong with. Error: options of the
    /// kind's own that cannot be.
    [[nodiscard]] virtual Result<std::unique_ptr<KindBuilder>> builder(const KindOptions& options) const = 0;

    /// The forms that are worth comparing with other kinds, in planning and benchmarks.
    [[nodiscard]] virtual std::vector<KindOptions> forms() const;

    /// The choices that were chosen, or the standard.
    [[nodiscard]] std::uint32_t choices_of(const KindOptions& options) const {
        return options.choices.value_or(facts_.choices.standard);
    }
    /// The rounds that were chosen, or those of the effort.
    [[nodiscard]] std::uint32_t rounds_of(const KindOptions& options) const {
        return options.rounds.value_or(rounds(options.effort, choices_of(options)));
    }
    /// "2 choices", "1 group".
    [[nodiscard]] std::string count_choices(std::uint32_t count) const;

  private:
    KindFacts facts_;
};

} // namespace sieve
