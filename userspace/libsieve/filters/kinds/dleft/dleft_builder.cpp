// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/dleft/dleft_builder.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include <fmt/core.h>

#include "libsieve/filters/placement/placed_shards.hpp"
#include "libsieve/filters/placement/shards.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {

namespace {

constexpr std::uint8_t highest_count = std::numeric_limits<std::uint8_t>::max();

// A fast source of random bits for ties; quality hardly matters here.
class TieRandom {
  public:
    explicit TieRandom(std::uint64_t seed) : state_(sieve_mix(seed ^ 0x9e3779b97f4a7c15ULL) | 1) {}
    std::uint64_t operator()() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_;
    }

  private:
    std::uint64_t state_;
};

// The buckets that a key may be in, numbered through the shard's part of all subtables.
struct KeyBuckets {
    std::array<std::uint32_t, SIEVE_DLEFT_MAX_SUBTABLES> bucket;
};

// The keys of one shard, and which of its buckets each of them takes. The loads of a shard's buckets fit into
// the first-level cache or nearly so.
class Placement {
  public:
    Placement(const sieve_lookup& lookup, std::span<const sieve_hash> keys, std::uint32_t shard)
        : lookup_(lookup), keys_(keys), shift_(sieve_dleft_line_shift(&lookup)), subtables_(lookup.choices),
          lines_(lookup.buckets >> lookup.shard_bits), first_line_(shard * lines_),
          loads_((std::size_t{lines_} << shift_) * subtables_), choice_(keys.size()) {}

    [[nodiscard]] KeyBuckets choices(std::size_t key) const {
        KeyBuckets found{};
        for (std::uint32_t i = 0; i < subtables_; i++) {
            std::uint32_t position = 0;
            const std::uint32_t line = sieve_dleft_locate_in(&lookup_, keys_[key], i, &position) -
                                       i * lookup_.buckets - first_line_ + i * lines_;
            found.bucket[i] = (line << shift_) | position;
        }
        return found;
    }
    [[nodiscard]] std::uint32_t bucket(std::size_t key) const { return choices(key).bucket[choice_[key]]; }
    [[nodiscard]] std::span<const std::uint8_t> loads() const { return loads_; }
    /// Lines of the shard in one subtable, and the number of the first of them there.
    [[nodiscard]] std::uint32_t lines() const { return lines_; }
    [[nodiscard]] std::uint32_t first_line() const { return first_line_; }

    // Inserts each key into its least loaded bucket, ties to the left, in the order `at`. Returns false if a
    // load exceeds its limit.
    template <class At>
    bool insert_all(const At& at) {
        for (std::size_t n = 0; n < keys_.size(); n++) {
            const std::size_t key = at(n);
            const KeyBuckets found = choices(key);
            std::uint32_t best = 0;
            for (std::uint32_t i = 1; i < subtables_; i++)
                if (loads_[found.bucket[i]] < loads_[found.bucket[best]]) best = i;
            if (loads_[found.bucket[best]] == highest_count) return false;
            loads_[found.bucket[best]]++;
            choice_[key] = static_cast<std::uint8_t>(best);
        }
        return true;
    }

    // Section II-D: removes each key and inserts it again. Returns how many keys moved.
    std::uint64_t balance(DleftTies ties, TieRandom& random) {
        std::uint64_t moved = 0;
        for (std::size_t key = 0; key < keys_.size(); key++) {
            const KeyBuckets found = choices(key);
            const std::uint32_t old = choice_[key];
            loads_[found.bucket[old]]--;
            const std::uint32_t best = replace(found, old, ties, random);
            loads_[found.bucket[best]]++;
            choice_[key] = static_cast<std::uint8_t>(best);
            moved += best != old ? 1 : 0;
        }
        return moved;
    }

  private:
    std::uint32_t replace(const KeyBuckets& found, std::uint32_t old, DleftTies ties,
                          TieRandom& random) const {
        std::uint8_t least = loads_[found.bucket[0]];
        for (std::uint32_t i = 1; i < subtables_; i++) least = std::min(least, loads_[found.bucket[i]]);
        if (ties == DleftTies::stay && loads_[found.bucket[old]] == least) return old;
        std::array<std::uint32_t, SIEVE_DLEFT_MAX_SUBTABLES> equal{};
        std::uint32_t many = 0;
        for (std::uint32_t i = 0; i < subtables_; i++)
            if (loads_[found.bucket[i]] == least) equal[many++] = i;
        if (ties != DleftTies::random || many == 1) return equal[0];
        return equal[sieve_reduce(static_cast<std::uint32_t>(random() >> 32), many)];
    }

    const sieve_lookup& lookup_;
    std::span<const sieve_hash> keys_;
    std::uint32_t shift_;
    std::uint32_t subtables_;
    std::uint32_t lines_;
    std::uint32_t first_line_;
    std::vector<std::uint8_t> loads_;
    std::vector<std::uint8_t> choice_;
};

Status check_lines(const sieve_lookup& lookup, std::uint64_t lines) {
    SIEVE_TRY(shape_of(lookup).check());
    if (lookup.buckets == 0 || lookup.buckets > SIEVE_DLEFT_MAX_LINES)
        return invalid_request(
            fmt::format("{} lines a subtable, expected 1 to {}", lookup.buckets, SIEVE_DLEFT_MAX_LINES));
    if (lines != std::uint64_t{lookup.buckets} * lookup.choices)
        return invalid_request(fmt::format("{} lines, the header asks for {}", lines,
                                           std::uint64_t{lookup.buckets} * lookup.choices));
    return {};
}

// Writes the shard's lines.
Status write_lines(const Placement& placement, std::span<const sieve_hash> keys, const DleftShape& shape,
                   const sieve_lookup& lookup, std::span<sieve_line> lines) {
    const std::uint32_t per_line = shape.buckets_per_line();
    const std::span<const std::uint8_t> loads = placement.loads();
    std::vector<std::uint32_t> start(loads.size() + 1); // where each bucket's fingerprints start
    std::inclusive_scan(loads.begin(), loads.end(), start.begin() + 1, std::plus<>{}, std::uint32_t{0});

    std::vector<std::uint64_t> tests(keys.size());
    std::vector<std::uint8_t> filled(loads.size());
    for (std::size_t key = 0; key < keys.size(); key++) {
        const std::uint32_t bucket = placement.bucket(key);
        tests[start[bucket] + filled[bucket]++] = keys[key].test;
    }
    std::array<std::span<std::uint64_t>, 1U << SIEVE_DLEFT64_LINE_SHIFT> members;
    std::uint32_t bucket = 0;
    for (std::uint32_t i = 0; i < shape.subtables; i++) {
        const std::uint64_t first = std::uint64_t{i} * lookup.buckets + placement.first_line();
        for (sieve_line& line : lines.subspan(first, placement.lines())) {
            for (std::uint32_t b = 0; b < per_line; b++, bucket++)
                members[b] = {tests.data() + start[bucket], tests.data() + start[bucket + 1]};
            SIEVE_TRY(encode_line(shape, std::span(members).first(per_line), line));
        }
    }
    return {};
}

// How many buckets of each subtable have which load, and how many are too full for their counter.
DleftReport count_loads(const Placement& placement, const DleftShape& shape) {
    const std::span<const std::uint8_t> loads = placement.loads();
    const std::size_t buckets = loads.size() / shape.subtables;
    DleftReport report;
    report.loads.assign(shape.subtables, std::vector<std::uint64_t>(std::ranges::max(loads) + 1U));
    for (std::size_t b = 0; b < loads.size(); b++) {
        report.loads[b / buckets][loads[b]]++;
        report.overflowed += loads[b] > shape.top_load() ? 1 : 0;
        report.always += loads[b] > shape.most_load() ? 1 : 0;
    }
    return report;
}

// Adds what a shard reports.
void add(DleftReport& all, const DleftReport& shard) {
    all.rounds = std::max(all.rounds, shard.rounds);
    all.overflowed += shard.overflowed;
    all.always += shard.always;
    all.loads.resize(shard.loads.size());
    for (std::size_t i = 0; i < all.loads.size(); i++) {
        std::vector<std::uint64_t>& row = all.loads[i];
        row.resize(std::max(row.size(), shard.loads[i].size()));
        std::ranges::transform(shard.loads[i], row, row.begin(), std::plus<>{});
    }
}

Result<DleftReport> place_shard(std::span<const sieve_hash> keys, std::uint32_t number,
                                const sieve_lookup& lookup, std::span<sieve_line> lines,
                                const DleftOptions& options) {
    const DleftShape shape = shape_of(lookup);
    Placement placement(lookup, keys, number);
    bool fits;
    if (options.scatter) {
        std::vector<std::uint32_t> order(keys.size());
        std::iota(order.begin(), order.end(), 0U);
        // Not by the upper half, which becomes the fingerprint: early keys go to the left, and the subtables
        // would hold different fingerprints.
        std::ranges::sort(order, {}, [&](std::uint32_t key) { return std::rotl(keys[key].test, 32); });
        fits = placement.insert_all([&](std::size_t i) { return order[i]; });
    } else {
        fits = placement.insert_all([](std::size_t i) { return i; });
    }
    if (!fits)
        return invalid_request(fmt::format("{} keys are too many for {} lines", keys.size(),
                                           std::uint64_t{placement.lines()} * shape.subtables));
    std::uint32_t rounds = 0;
    constexpr std::uint64_t apart = 0x9e3779b97f4a7c15; // between the seeds of two shards
    TieRandom random(options.seed + number * apart);
    for (; rounds < options.rounds; rounds++)
        if (placement.balance(options.ties, random) == 0) break;
    SIEVE_TRY(write_lines(placement, keys, shape, lookup, lines));
    DleftReport report = count_loads(placement, shape);
    report.rounds = rounds;
    return report;
}

// Calls `tell(subtable, bucket)` for all buckets.
template <class Tell>
void for_each_bucket(const sieve_lookup& lookup, std::span<const sieve_line> lines, const Tell& tell) {
    const DleftShape shape = shape_of(lookup);
    for (std::uint32_t i = 0; i < shape.subtables; i++)
        for (const sieve_line& line : lines.subspan(std::uint64_t{i} * lookup.buckets, lookup.buckets))
            for (DleftBucket& bucket : decode_line(shape, line)) tell(i, bucket);
}

double buckets_of_subtable(const sieve_lookup& lookup) {
    return static_cast<double>(lookup.buckets) * shape_of(lookup).buckets_per_line();
}

// A fingerprint's class: its leading bits.
constexpr std::uint32_t class_bits = 8;
using ClassSums = std::array<double, 1U << class_bits>;

// Adds, for each class, the probability that a random fingerprint of the class is in the bucket.
void add_rates(DleftBucket& bucket, ClassSums& sums) {
    if (bucket.always) {
        for (double& sum : sums) sum++;
    } else if (bucket.length >= class_bits) {
        const std::uint32_t rest = bucket.length - class_bits;
        const double rate = std::ldexp(1, -static_cast<int>(rest));
        for (const std::uint64_t fingerprint : bucket.distinct()) sums[fingerprint >> rest] += rate;
    } else {
        const std::uint32_t rest = class_bits - bucket.length;
        for (const std::uint64_t fingerprint : bucket.distinct())
            for (double& sum : std::span(sums).subspan(fingerprint << rest, std::size_t{1} << rest)) sum++;
    }
}

} // namespace

Result<DleftReport> place_dleft_shards(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                       std::span<sieve_line> lines, std::uint32_t first, std::uint32_t count,
                                       const DleftOptions& options, const Progress& progress) {
    SIEVE_TRY(check_lines(lookup, lines.size()));
    std::vector<Result<DleftReport>> reports(count);
    PlacedShards placed(count, progress);
    for_each_index(count, [&](std::size_t i) {
        const std::uint32_t number = first + static_cast<std::uint32_t>(i);
        const auto own = keys_of_shard(keys, lookup.shard_bits, number);
        reports[i] = place_shard(own, number, lookup, lines, options);
        placed.add();
    });
    DleftReport all;
    for (const Result<DleftReport>& report : reports) {
        if (!report) return report;
        add(all, *report);
    }
    return all;
}

Result<DleftReport> place_dleft(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                std::span<sieve_line> lines, const DleftOptions& options,
                                const Progress& progress) {
    return place_dleft_shards(keys, lookup, lines, 0, 1U << lookup.shard_bits, options, progress);
}

double expected_dleft_fpr(const sieve_lookup& lookup, std::span<const sieve_line> lines) {
    std::vector<ClassSums> sums(lookup.choices, ClassSums{});
    for_each_bucket(lookup, lines, [&](std::uint32_t i, DleftBucket& bucket) { add_rates(bucket, sums[i]); });
    const double buckets = buckets_of_subtable(lookup);
    double rate = 0;
    for (std::size_t c = 0; c < sums[0].size(); c++) {
        double absent = 1;
        for (const ClassSums& subtable : sums) absent *= 1 - subtable[c] / buckets;
        rate += 1 - absent;
    }
    return rate / static_cast<double>(sums[0].size());
}

double union_bound_dleft_fpr(const sieve_lookup& lookup, std::span<const sieve_line> lines) {
    double sum = 0;
    for_each_bucket(lookup, lines, [&](std::uint32_t, const DleftBucket& bucket) {
        sum += bucket.always ? 1 : std::ldexp(bucket.load, -static_cast<int>(bucket.length));
    });
    return sum / buckets_of_subtable(lookup);
}

} // namespace sieve
