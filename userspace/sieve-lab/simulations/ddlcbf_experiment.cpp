// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/ddlcbf_experiment.hpp"

#include <random>

#include <sieve/ddlcbf.h>

namespace sieve {

namespace {

// The filter, with buckets as objects. The hashing comes from the shared header.
class Table {
  public:
    explicit Table(const CountingExperiment& e)
        : shape_(e.shape), subtables_(e.subtables), buckets_(e.buckets),
          table_(std::size_t{e.subtables} * e.buckets) {}

    bool insert(const sieve_hash& hash) {
        CountingBucket* best = nullptr;
        std::uint64_t best_remainder = 0;
        for (std::uint32_t i = 0; i < subtables_; i++) {
            const auto [bucket, remainder] = at(hash, i);
            if (bucket->has_minimal(remainder, shape_)) return bucket->insert(remainder, shape_);
            if (best != nullptr && bucket->load() >= best->load()) continue;
            best = bucket;
            best_remainder = remainder;
        }
        return best->insert(best_remainder, shape_);
    }
    bool erase(const sieve_hash& hash) {
        for (std::uint32_t i = 0; i < subtables_; i++) {
            const auto [bucket, remainder] = at(hash, i);
            if (bucket->erase(remainder)) return true;
        }
        return false;
    }
    bool contains(const sieve_hash& hash) {
        for (std::uint32_t i = 0; i < subtables_; i++) {
            const auto [bucket, remainder] = at(hash, i);
            if (bucket->contains(remainder)) return true;
        }
        return false;
    }
    [[nodiscard]] double rate() const {
        double absent = 1;
        for (std::uint32_t i = 0; i < subtables_; i++) {
            double sum = 0;
            for (std::uint32_t b = 0; b < buckets_; b++) sum += table_[std::size_t{i} * buckets_ + b].rate();
            absent *= 1 - sum / buckets_;
        }
        return 1 - absent;
    }
    [[nodiscard]] const std::vector<CountingBucket>& buckets() const { return table_; }

  private:
    struct Place {
        CountingBucket* bucket;
        std::uint64_t remainder;
    };
    Place at(const sieve_hash& hash, std::uint32_t i) {
        const sieve_ddlcbf_pair pair = sieve_ddlcbf_pair_of(hash, i, buckets_, shape_.minimal);
        return {&table_[std::size_t{i} * buckets_ + pair.bucket],
                sieve_ddlcbf_remainder(hash.test, pair.minimal, shape_.minimal)};
    }

    CountingShape shape_;
    std::uint32_t subtables_;
    std::uint32_t buckets_;
    std::vector<CountingBucket> table_;
};

} // namespace

CountingShape paper_dlcbf() {
    return {
        .bits = 120, .counter_bits = 1, .sorted_bits = 0, .minimal = 14, .least_cells = 8, .most_cells = 8};
}

CountingShape paper_ddlcbf() {
    return {.bits = 120, .counter_bits = 1, .sorted_bits = 1, .minimal = 11, .most_cells = 10};
}

CountingShape paper_two_sizes() {
    return {
        .bits = 120, .counter_bits = 1, .sorted_bits = 0, .minimal = 11, .most_cells = 10, .two_sizes = true};
}

Result<CountingOutcome> run_counting_experiment(const CountingExperiment& e) {
    if (e.subtables < 1 || e.subtables > SIEVE_DLEFT_MAX_SUBTABLES || e.buckets == 0 || e.keys == 0)
        return invalid_request("an experiment without subtables, buckets or keys");
    if (e.shape.most_cells > CountingBucket::room || e.shape.minimal < 1 || e.shape.minimal > 31 ||
        e.shape.capacity() == 0 || e.shape.least_cells > e.shape.capacity() || e.shape.sorted_bits > 1 ||
        e.shape.counter_bits > 8)
        return invalid_request("no bucket has this shape");

    std::mt19937_64 random(e.seed);
    const auto draw = [&random] { return sieve_hash{random(), random()}; };
    CountingOutcome outcome;
    Table table(e);
    std::vector<sieve_hash> members;
    members.reserve(e.keys);
    const auto insert = [&] {
        const sieve_hash hash = draw();
        if (table.insert(hash))
            members.push_back(hash);
        else
            outcome.refused++;
    };
    for (std::uint64_t i = 0; i < e.keys; i++) insert();
    for (std::uint64_t i = 0; i < e.exchanges && !members.empty(); i++) {
        auto& victim = members[random() % members.size()];
        if (!table.erase(victim)) outcome.lost++;
        victim = members.back();
        members.pop_back();
        insert();
    }

    outcome.rate = table.rate();
    for (const auto& member : members) outcome.lost += table.contains(member) ? 0 : 1;
    for (std::uint64_t i = 0; i < e.queries; i++) outcome.false_positives += table.contains(draw()) ? 1 : 0;
    outcome.loads.resize(CountingBucket::room + 1);
    outcome.maxima.resize(CountingBucket::room + 1);
    for (const auto& bucket : table.buckets()) {
        outcome.loads[bucket.load()]++;
        outcome.maxima[bucket.maximum()]++;
    }
    return outcome;
}

} // namespace sieve
