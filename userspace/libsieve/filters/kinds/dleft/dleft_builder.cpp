// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/dleft/dleft_builder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "libsieve/util/parallel.hpp"

namespace sieve {

namespace {

constexpr std::uint8_t highest_count = std::numeric_limits<std::uint8_t>::max();
// The most keys whose fingerprints are in memory at once while lines are written.
constexpr std::uint64_t keys_at_once = 1U << 24;
constexpr std::size_t prefetch_distance = 16;

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

// The buckets that a key may be in, numbered through all subtables.
struct KeyBuckets {
    std::array<std::uint64_t, SIEVE_DLEFT_MAX_SUBTABLES> bucket;
};

class Placement {
  public:
    Placement(const sieve_lookup& lookup, std::span<const sieve_hash> keys)
        : lookup_(lookup), keys_(keys), shift_(sieve_dleft_line_shift(&lookup)), subtables_(lookup.choices),
          loads_((std::uint64_t{lookup.buckets} << shift_) * subtables_), choice_(keys.size()) {}

    [[nodiscard]] KeyBuckets choices(std::size_t key) const {
        std::uint32_t line[SIEVE_DLEFT_MAX_SUBTABLES] = {};
        std::uint32_t position[SIEVE_DLEFT_MAX_SUBTABLES] = {};
        sieve_dleft_locate(&lookup_, keys_[key], line, position);
        KeyBuckets found{};
        for (std::uint32_t i = 0; i < subtables_; i++)
            found.bucket[i] = (std::uint64_t{line[i]} << shift_) | position[i];
        return found;
    }
    [[nodiscard]] std::uint64_t bucket(std::size_t key) const { return choices(key).bucket[choice_[key]]; }
    [[nodiscard]] std::uint8_t load(std::uint64_t bucket) const { return loads_[bucket]; }

    // Inserts each key into its least loaded bucket, ties to the left. Returns false if a load exceeds its
    // limit.
    bool insert_all() {
        for (std::size_t key = 0; key < keys_.size(); key++) {
            request(key);
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
            request(key);
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
    // Prefetches the loads of a key that comes soon.
    void request(std::size_t key) const {
        if (key + prefetch_distance >= keys_.size()) return;
        const KeyBuckets next = choices(key + prefetch_distance);
        for (std::uint32_t i = 0; i < subtables_; i++) __builtin_prefetch(&loads_[next.bucket[i]], 1);
    }

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
    std::vector<std::uint8_t> loads_;
    std::vector<std::uint8_t> choice_;
};

Status check(const sieve_lookup& lookup, std::uint64_t lines) {
    SIEVE_TRY(shape_of(lookup).check());
    if (lookup.buckets == 0 || lookup.buckets > SIEVE_DLEFT_MAX_LINES)
        return invalid_request(
            fmt::format("{} lines a subtable, expected 1 to {}", lookup.buckets, SIEVE_DLEFT_MAX_LINES));
    if (lines != std::uint64_t{lookup.buckets} * lookup.choices)
        return invalid_request(fmt::format("{} lines, the header asks for {}", lines,
                                           std::uint64_t{lookup.buckets} * lookup.choices));
    return {};
}

// Writes lines from `begin` on: as many as hold at most keys_at_once keys, but at least one. Returns the end
// of these lines.
Result<std::uint64_t> write_lines(const Placement& placement, std::span<const sieve_hash> keys,
                                  const DleftShape& shape, std::span<sieve_line> lines, std::uint64_t begin) {
    const std::uint32_t per_line = shape.buckets_per_line();
    std::vector<std::uint64_t> start{0}; // where each bucket's fingerprints start
    std::uint64_t end = begin;
    for (; end < lines.size() && start.back() <= keys_at_once; end++)
        for (std::uint32_t b = 0; b < per_line; b++)
            start.push_back(start.back() + placement.load(end * per_line + b));

    std::vector<std::uint64_t> tests(start.back());
    std::vector<std::uint8_t> filled(start.size() - 1);
    for (std::size_t key = 0; key < keys.size(); key++) {
        const std::uint64_t bucket = placement.bucket(key);
        if (bucket < begin * per_line || bucket >= end * per_line) continue;
        const std::uint64_t at = bucket - begin * per_line;
        tests[start[at] + filled[at]++] = keys[key].test;
    }
    std::array<std::span<std::uint64_t>, 1U << SIEVE_DLEFT64_LINE_SHIFT> members;
    for (std::uint64_t line = begin; line < end; line++) {
        for (std::uint32_t b = 0; b < per_line; b++) {
            const std::uint64_t at = (line - begin) * per_line + b;
            members[b] = {tests.data() + start[at], tests.data() + start[at + 1]};
        }
        SIEVE_TRY(encode_line(shape, std::span(members).first(per_line), lines[line]));
    }
    return end;
}

// Sums `rate_of` over the buckets of each subtable, divided by their number.
template <class RateOf>
std::vector<double> mean_rates(const sieve_lookup& lookup, std::span<const sieve_line> lines,
                               const RateOf& rate_of) {
    const DleftShape shape = shape_of(lookup);
    std::vector<double> means;
    for (std::uint32_t i = 0; i < shape.subtables; i++) {
        double sum = 0;
        for (const sieve_line& line : lines.subspan(std::uint64_t{i} * lookup.buckets, lookup.buckets))
            for (const DleftBucket& bucket : decode_line(shape, line)) sum += rate_of(bucket);
        means.push_back(sum / (static_cast<double>(lookup.buckets) * shape.buckets_per_line()));
    }
    return means;
}

} // namespace

Result<DleftReport> place_dleft(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                std::span<sieve_line> lines, const DleftOptions& options,
                                const Progress& progress) {
    SIEVE_TRY(check(lookup, lines.size()));
    const DleftShape shape = shape_of(lookup);
    const auto tell = [&progress](std::string_view stage, double share) {
        if (progress) progress(stage, share);
    };

    Placement placement(lookup, keys);
    tell("placing", 0);
    if (!placement.insert_all())
        return invalid_request(fmt::format("{} keys are too many for {} lines", keys.size(), lines.size()));
    DleftReport report;
    TieRandom random(options.seed);
    for (; report.rounds < options.rounds; report.rounds++) {
        tell("balancing", static_cast<double>(report.rounds) / options.rounds);
        if (placement.balance(options.ties, random) == 0) break;
    }

    for (std::uint64_t line = 0; line < lines.size();) {
        tell("writing", static_cast<double>(line) / static_cast<double>(lines.size()));
        SIEVE_ASSIGN(line, write_lines(placement, keys, shape, lines, line));
    }

    const std::uint64_t buckets = std::uint64_t{lookup.buckets} * shape.buckets_per_line();
    std::uint32_t highest = 0;
    for (std::uint64_t b = 0; b < buckets * shape.subtables; b++)
        highest = std::max<std::uint32_t>(highest, placement.load(b));
    report.loads.assign(shape.subtables, std::vector<std::uint64_t>(highest + 1));
    for (std::uint64_t b = 0; b < buckets * shape.subtables; b++) {
        report.loads[b / buckets][placement.load(b)]++;
        report.overflowed += placement.load(b) > shape.top_load() ? 1 : 0;
        report.always += placement.load(b) > shape.most_load() ? 1 : 0;
    }
    return report;
}

Result<DleftReport> fill_dleft(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                               std::span<sieve_line> lines, const DleftOptions& options,
                               const Progress& progress) {
    if (options.rounds > 0) return place_dleft(keys, lookup, lines, options, progress);
    std::vector<sieve_hash> scattered(keys.begin(), keys.end());
    sort_in_parallel(scattered.begin(), scattered.end(),
                     [](const sieve_hash& a, const sieve_hash& b) { return a.test < b.test; });
    return place_dleft(scattered, lookup, lines, options, progress);
}

double expected_dleft_fpr(const sieve_lookup& lookup, std::span<const sieve_line> lines) {
    double absent = 1;
    for (const double mean : mean_rates(lookup, lines, [](const DleftBucket& b) { return b.rate(); }))
        absent *= 1 - mean;
    return 1 - absent;
}

double union_bound_dleft_fpr(const sieve_lookup& lookup, std::span<const sieve_line> lines) {
    double sum = 0;
    for (const double mean : mean_rates(lookup, lines, [](const DleftBucket& bucket) {
             return bucket.always ? 1 : std::ldexp(bucket.load, -static_cast<int>(bucket.length));
         }))
        sum += mean;
    return sum;
}

} // namespace sieve
