// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_kind.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/core.h>

#include "libsieve/filters/kinds/ddlcbf/ddlcbf_filter.hpp"
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_room.hpp"
#include "libsieve/filters/placement/sample_hashes.hpp"
#include "libsieve/filters/sizing.hpp"
#include "libsieve/util/parallel/parallel_sort.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

namespace {

// By measurement, this value wears least under exchanges (ddlcbf_filter.hpp).
constexpr std::uint32_t default_minimal = 11;

constexpr std::uint64_t sample_keys = 32768;
constexpr std::uint64_t sample_seed = 0x5349455645; // any; fixed, so that predictions can be compared

// The most keys that may be expected to find no room. A filter with more is refused before it is built; with
// fewer, an order of insertions in which all keys fit is soon found.
constexpr double most_keys_without_room = 0.5;
constexpr std::uint64_t most_attempts = 16;

// Fills the filter the way it will be used: by insertions in no particular order, without rebalancing.
class DdlcbfBuilder final : public KindBuilder {
  public:
    explicit DdlcbfBuilder(const DdlcbfShape& shape) : shape_(shape) {}

    [[nodiscard]] std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const override {
        return whole_tables(sieve::lines_for_bits(keys, bits_per_key));
    }

    [[nodiscard]] Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const override {
        const auto predicted = [&](std::uint64_t some) {
            const std::uint64_t lines = whole_tables(some);
            sieve_lookup lookup{};
            return fits(keys, lines) && describe(keys, lines, lookup) ? predict_fpr(keys, lookup) : 1;
        };
        if (const auto lines = fewest_lines(fpr,
                                            {.least = lines_for_bits(keys, std::max(12.0, -std::log2(fpr))),
                                             .most = lines_for_bits(keys, most_bits_per_key)},
                                            predicted))
            return whole_tables(*lines);
        return invalid_request(
            fmt::format("a false positive rate of {:.3g} is out of reach of a counting filter", fpr));
    }

    [[nodiscard]] std::uint64_t usable_lines(std::uint64_t lines) const override {
        return lines - lines % shape_.subtables;
    }

    [[nodiscard]] Status describe(std::uint64_t keys, std::uint64_t lines,
                                  sieve_lookup& lookup) const override {
        if (!fits(keys, lines)) {
            double enough = bits_per_key_of(keys, lines);
            while (!fits(keys, lines_for_bits(keys, enough))) enough *= 1.01;
            return invalid_request(fmt::format(
                "{} keys do not fit a counting filter of {} subtables with {:.1f} bits per key; {:.1f} do",
                keys, shape_.subtables, bits_per_key_of(keys, lines), std::ceil(enough * 10) / 10));
        }
        store_shape(shape_, lookup);
        lookup.buckets = static_cast<std::uint32_t>(lines / shape_.subtables);
        return {};
    }

    [[nodiscard]] std::optional<double> model_fpr(std::uint64_t, const sieve_lookup&) const override {
        return {};
    }

    [[nodiscard]] double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const override {
        const std::uint64_t sample = std::min(keys, sample_keys);
        sieve_lookup small = lookup;
        small.buckets = static_cast<std::uint32_t>(std::max<std::uint64_t>(
            1, std::llround(static_cast<double>(lookup.buckets) * static_cast<double>(sample) /
                            static_cast<double>(keys))));
        const std::uint64_t filters = std::min<std::uint64_t>(64, (sample_keys + sample - 1) / sample);
        std::mt19937_64 random(sample_seed);
        double rate = 0;
        for (std::uint64_t f = 0; f < filters; f++) {
            const std::vector<sieve_hash> hashes = sample_hashes(sample, random);
            std::vector<sieve_line> lines(ddlcbf_kind.lines(small));
            if (!fill(hashes, small, lines, 0, {})) return 1;
            rate += ddlcbf_kind.expected_rate(small, lines, sample);
        }
        return rate / static_cast<double>(filters);
    }

    // All copies of a key go into one bucket, where two of them share a cell.
    [[nodiscard]] std::uint32_t most_copies() const override {
        const CountingShape bucket = shape_.bucket();
        return bucket.capacity() << bucket.counter_bits;
    }

    [[nodiscard]] Result<std::uint32_t> fill(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                             std::span<sieve_line> lines, std::uint64_t,
                                             const Progress& progress) const override {
        std::vector<sieve_hash> crowded = by_copies(keys);
        if (!crowded.empty()) keys = crowded;
        // Whether the last key finds room depends on luck and on the order of all keys.
        std::vector<sieve_hash> reordered;
        for (std::uint64_t attempt = 0; attempt < most_attempts; attempt++) {
            SIEVE_ASSIGN(const bool all, insert_all(keys, lookup, lines, progress));
            if (all) return 0U;
            reordered = std::vector<sieve_hash>(keys.begin(), keys.end());
            sort_in_parallel(reordered.begin(), reordered.end(),
                             [attempt](const sieve_hash& a, const sieve_hash& b) {
                                 return sieve_mix(a.test + attempt) < sieve_mix(b.test + attempt);
                             });
            if (!crowded.empty()) reordered = by_copies(reordered);
            keys = reordered;
        }
        return bad_input(fmt::format("{} keys find no room in {} lines", keys.size(), lines.size()));
    }

  private:
    // At least so many lines, the same number in each subtable.
    [[nodiscard]] std::uint64_t whole_tables(std::uint64_t lines) const {
        return (lines + shape_.subtables - 1) / shape_.subtables * shape_.subtables;
    }

    [[nodiscard]] bool fits(std::uint64_t keys, std::uint64_t lines) const {
        return ddlcbf_keys_without_room(keys, lines, shape_) <= most_keys_without_room;
    }

    // The keys, of which equal ones are neighbours, with the most frequent ones first: these need several
    // cells of one bucket, which only an empty bucket is sure to have. Nothing if all are distinct.
    static std::vector<sieve_hash> by_copies(std::span<const sieve_hash> keys) {
        const auto same = [](const sieve_hash& a, const sieve_hash& b) {
            return a.locate == b.locate && a.test == b.test;
        };
        if (std::adjacent_find(keys.begin(), keys.end(), same) == keys.end()) return {};
        std::vector<std::span<const sieve_hash>> runs;
        for (auto at = keys.begin(); at != keys.end();) {
            const auto end = std::find_if(at, keys.end(), [&](const auto& key) { return !same(key, *at); });
            runs.emplace_back(at, end);
            at = end;
        }
        std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
            return a.size() != b.size() ? a.size() > b.size() : a.data() < b.data();
        });
        std::vector<sieve_hash> ordered;
        ordered.reserve(keys.size());
        for (const auto& run : runs) ordered.insert(ordered.end(), run.begin(), run.end());
        return ordered;
    }

    // Returns false if a key finds no room.
    static Result<bool> insert_all(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                   std::span<sieve_line> lines, const Progress& progress) {
        std::fill(lines.begin(), lines.end(), sieve_line{});
        SIEVE_ASSIGN(DdlcbfFilter filter, DdlcbfFilter::open(lookup, lines));
        for (std::size_t i = 0; i < keys.size(); i++) {
            if (progress && (i & 0xffff) == 0)
                progress("inserting", static_cast<double>(i) / static_cast<double>(keys.size()));
            if (!filter.insert(keys[i])) return false;
        }
        return true;
    }

    DdlcbfShape shape_;
};

} // namespace

const constinit DdlcbfKind ddlcbf_kind;

std::string DdlcbfKind::geometry_fault(const sieve_lookup& lookup) const {
    if (lookup.buckets > SIEVE_DLEFT_MAX_LINES)
        return fmt::format("subtables of {} lines, expected at most {}", lookup.buckets,
                           SIEVE_DLEFT_MAX_LINES);
    if (lookup.alpha > SIEVE_DDLCBF_MAX_CELLS)
        return fmt::format("buckets of {} cells, expected at most {}", lookup.alpha, SIEVE_DDLCBF_MAX_CELLS);
    const DdlcbfShape shape = ddlcbf_shape_of(lookup);
    if (shape.minimal < SIEVE_DDLCBF_MIN_MINIMAL || shape.minimal > SIEVE_DDLCBF_MAX_MINIMAL ||
        shape.counter_bits > 2)
        return fmt::format("bucket format {:#x}, expected remainders of {} to {} bits and counters of 0 to 2",
                           lookup.hashes, SIEVE_DDLCBF_MIN_MINIMAL, SIEVE_DDLCBF_MAX_MINIMAL);
    return {};
}

std::uint64_t DdlcbfKind::lines(const sieve_lookup& lookup) const {
    return std::uint64_t{lookup.choices} * lookup.buckets;
}

bool DdlcbfKind::holds(const sieve_lookup& lookup, const sieve_hash& hash, const sieve_line* filter) const {
    sieve_ddlcbf_address address[SIEVE_DLEFT_MAX_SUBTABLES] = {};
    sieve_ddlcbf_locate(&lookup, hash, address);
    const sieve_line* line[SIEVE_DLEFT_MAX_SUBTABLES];
    for (int i = 0; i < SIEVE_DLEFT_MAX_SUBTABLES; i++) line[i] = filter + address[i].line;
    return sieve_ddlcbf_test(&lookup, line, address) != 0;
}

double DdlcbfKind::expected_rate(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                 std::uint64_t) const {
    // DdlcbfFilter::open takes only writable lines
    std::vector<sieve_line> copy(filter.begin(), filter.end());
    const auto opened = DdlcbfFilter::open(lookup, copy);
    return opened ? opened->expected_fpr() : 1;
}

std::string DdlcbfKind::geometry(const sieve_lookup& lookup) const {
    return fmt::format("{} of {}", count_choices(lookup.choices), counted(lookup.buckets, "line"));
}

std::string DdlcbfKind::parameters(const sieve_lookup& lookup, std::uint64_t keys) const {
    const double buckets = static_cast<double>(lines(lookup)) * (1U << SIEVE_DDLCBF_LINE_SHIFT);
    return fmt::format("{}, load {:.1f}, counters", count_choices(lookup.choices),
                       static_cast<double>(keys) / buckets);
}

LinesTouched DdlcbfKind::lines_touched(const sieve_lookup& lookup, double) const {
    return {.non_member = static_cast<double>(lookup.choices), .member = static_cast<double>(lookup.choices)};
}

std::uint32_t DdlcbfKind::rounds(Effort, std::uint32_t) const {
    return 0;
}

Result<std::unique_ptr<KindBuilder>> DdlcbfKind::builder(const KindOptions& options) const {
    const DdlcbfShape shape{.subtables = choices_of(options), .minimal = default_minimal};
    SIEVE_TRY(shape.check());
    return std::make_unique<DdlcbfBuilder>(shape);
}

Result<std::unique_ptr<ChangeableFilter>> DdlcbfKind::open_for_change(const sieve_lookup& lookup,
                                                                      std::span<sieve_line> lines) const {
    SIEVE_ASSIGN(DdlcbfFilter filter, DdlcbfFilter::open(lookup, lines));
    return std::make_unique<DdlcbfFilter>(filter);
}

} // namespace sieve
