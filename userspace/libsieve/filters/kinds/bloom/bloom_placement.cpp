// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/bloom/bloom_placement.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <vector>

#include "libsieve/analysis/two_choice.hpp"
#include "libsieve/filters/kinds/bloom/counting_bloom.hpp"
#include "libsieve/filters/placement/noise_table.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/random/splitmix64.hpp"

namespace sieve {

namespace {

// The annealing's temperatures at its start and its end, measured in ones, and the share of the rounds that
// annealing takes. The remaining rounds only make moves that cost nothing. Found by measurement (16 bits a
// key, c = 3, 16 to 150 rounds).
constexpr float start_temperature = 1.0F;
constexpr float end_temperature = 0.3F;
constexpr double annealing_share = 0.9;

// How many keys ahead the counters are prefetched.
constexpr std::size_t lookahead = 6;
constexpr std::size_t window = 8; // the power of two above

using Noise = NoiseTable<12>;

// The hot loops are also compiled for newer x86 processors; the loader picks a version. clang++ cannot do
// this: release 19 leaves out the inline functions that a clone calls, so the program does not link (release
// 14 linked).
#if defined(__x86_64__) && !defined(__clang__)
#define SIEVE_CLONES [[gnu::target_clones("arch=x86-64-v3", "default")]]
#else
#define SIEVE_CLONES
#endif

// Probes are processed in batches of this size. The last batch of a group is padded with probes of a spare
// counter that no key uses.
constexpr std::uint32_t batch = 8;

// The positions of one key's probes, group by group.
struct alignas(64) Positions {
    std::uint64_t at[SIEVE_BLOOM_MAX_GROUPS][SIEVE_BLOOM_MAX_HASHES];
};

// sieve/bloom.h derives each probe from the one before it. Probe i of group g is therefore a linear
// combination of the key's two words, and with known coefficients all probes can be computed at once.
struct Coefficients {
    explicit Coefficients(std::uint32_t groups, std::uint32_t hashes) {
        sieve_hash of_locate = {1, 0};
        sieve_hash of_test = {0, 1};
        for (std::uint32_t g = 0; g < groups; g++) {
            sieve_bloom_probe first = sieve_bloom_first(of_locate);
            sieve_bloom_probe second = sieve_bloom_first(of_test);
            for (std::uint32_t i = 0; i < hashes; i++) {
                locate[g][i] = first.position;
                test[g][i] = second.position;
                sieve_bloom_advance(&first);
                sieve_bloom_advance(&second);
            }
            of_locate = sieve_bloom_next_group(of_locate);
            of_test = sieve_bloom_next_group(of_test);
        }
    }
    alignas(64) std::uint64_t locate[SIEVE_BLOOM_MAX_GROUPS][SIEVE_BLOOM_MAX_HASHES] = {};
    alignas(64) std::uint64_t test[SIEVE_BLOOM_MAX_GROUPS][SIEVE_BLOOM_MAX_HASHES] = {};
};

// How many keys' moves are decided, on all processors, before any of them is made. The number is a small
// share of all keys, so that few of them compete for the same bits. Each portion is decided by one processor
// with the portion's own random numbers, so the result does not depend on the number of processors.
constexpr std::size_t most_at_once = 1U << 15;
constexpr std::size_t least_at_once = 1U << 6;
constexpr std::size_t least_batches = 512;
constexpr std::size_t portion = 1U << 8;

// How many keys are processed between progress reports.
constexpr std::size_t progress_keys = 1U << 16;

// What a pass does with each key in turn.
enum class Step {
    online, // inserts it
    greedy, // removes it and inserts it again
};

class BloomPlacement {
  public:
    BloomPlacement(std::span<const sieve_hash> keys, const sieve_lookup& lookup, std::uint64_t seed)
        : keys_(keys), groups_(lookup.choices), hashes_(lookup.hashes), lines_(lookup.buckets),
          padded_((lookup.hashes + batch - 1) / batch * batch),
          nobody_(std::uint64_t{lookup.buckets} * SIEVE_LINE_BITS), coefficients_(groups_, hashes_),
          counters_(nobody_ + 1), choice_(keys.size()), random_(seed) {
        counters_.increment(nobody_);
        counters_.increment(nobody_); // neither zero nor one
    }

    // Visits all keys in order and prefetches their counters. Returns how many keys changed their group.
    SIEVE_CLONES std::uint64_t pass(Step step, const Progress& progress, double from, double to) {
        const std::size_t n = keys_.size();
        std::array<Positions, window> ring;
        std::uint64_t moved = 0;
        for (std::size_t i = 0; i < n + lookahead; i++) {
            if (i < n) locate(keys_[i], ring[i % window]);
            if (i < lookahead) continue;
            const std::size_t index = i - lookahead;
            const Positions& key = ring[index % window];
            if (progress && index % progress_keys == 0)
                progress(step == Step::online ? "placing" : "rebalancing",
                         from + (to - from) * static_cast<double>(index) / static_cast<double>(n));
            const std::uint8_t before = choice_[index];
            if (step == Step::greedy) take_out(key, before);
            insert(index, key);
            moved += choice_[index] != before ? 1 : 0;
        }
        return moved;
    }

    // Moves keys to other groups unless a move costs more than the temperature allows. Returns how many keys
    // moved.
    std::uint64_t move_all(float temperature, const Progress& progress, double from, double to) {
        const std::size_t n = keys_.size();
        const std::size_t batch_keys = std::clamp(n / least_batches, least_at_once, most_at_once);
        std::vector<std::vector<Move>> moves((batch_keys + portion - 1) / portion);
        std::uint64_t moved = 0;
        for (std::size_t begin = 0; begin < n; begin += batch_keys) {
            if (progress && begin % progress_keys < batch_keys)
                progress("rebalancing",
                         from + (to - from) * static_cast<double>(begin) / static_cast<double>(n));
            const std::size_t end = std::min(n, begin + batch_keys);
            const std::uint64_t seed = random_();
            for_each_index((end - begin + portion - 1) / portion, [&](std::size_t p) {
                const std::size_t first = begin + p * portion;
                decide(first, std::min(end, first + portion), temperature, SplitMix64(sieve_mix(seed + p)),
                       moves[p]);
            });
            for (std::vector<Move>& decided : moves) {
                make(decided);
                moved += decided.size();
                decided.clear();
            }
        }
        return moved;
    }

    [[nodiscard]] double fraction_of_ones() const {
        return static_cast<double>(counters_.ones() - 1) / (static_cast<double>(lines_) * SIEVE_LINE_BITS);
    }

    [[nodiscard]] const NibbleCounters& counters() const { return counters_; }

  private:
    struct Move {
        std::size_t index;
        std::uint8_t to;
    };

    [[gnu::always_inline]] void locate(sieve_hash hash, Positions& key, std::uint32_t g) const {
        for (std::uint32_t i = 0; i < padded_; i++) {
            const sieve_bloom_probe probe = {
                coefficients_.locate[g][i] * hash.locate + coefficients_.test[g][i] * hash.test, 0};
            key.at[g][i] =
                std::uint64_t{sieve_bloom_line(&probe, lines_)} * SIEVE_LINE_BITS + sieve_bloom_bit(&probe);
        }
        for (std::uint32_t i = hashes_; i < padded_; i++) key.at[g][i] = nobody_;
    }

    [[gnu::always_inline]] void locate(sieve_hash hash, Positions& key) const {
        for (std::uint32_t g = 0; g < groups_; g++) {
            locate(hash, key, g);
            for (std::uint32_t i = 0; i < hashes_; i++) counters_.prefetch(key.at[g][i]);
        }
    }

    // How many of a group's counters have this value; for 0, the number of new ones that the key would set.
    [[gnu::always_inline]] [[nodiscard]] int count(const std::uint64_t* at, std::uint64_t value) const {
        const std::uint64_t* words = counters_.words();
        std::uint64_t sum = 0;
        for (std::uint32_t i = 0; i < padded_; i++)
            sum += ((words[at[i] / 16] >> (at[i] % 16 * 4)) & NibbleCounters::limit) == value ? 1U : 0U;
        return static_cast<int>(sum);
    }

    [[gnu::always_inline]] void put(const Positions& key, std::uint32_t group) {
        for (std::uint32_t i = 0; i < hashes_; i++) counters_.increment(key.at[group][i]);
    }

    [[gnu::always_inline]] void take_out(const Positions& key, std::uint32_t group) {
        for (std::uint32_t i = 0; i < hashes_; i++) counters_.decrement(key.at[group][i]);
    }

    // Two-choice paper, section 3.1, or 3.2 if the key has been removed before. Ties are broken at random.
    [[gnu::always_inline]] void insert(std::size_t index, const Positions& key) {
        std::uint32_t best = 0;
        int best_cost = count(key.at[0], 0);
        for (std::uint32_t g = 1; g < groups_; g++) {
            const int cost = count(key.at[g], 0);
            // Each of several equal groups must have the same chance: the g-th of them takes over with
            // probability 1/(g+1).
            ties_ = cost == best_cost ? ties_ + 1 : cost < best_cost ? 1 : ties_;
            if (cost < best_cost || (cost == best_cost && below(ties_) == 0)) {
                best = g;
                best_cost = cost;
            }
        }
        choice_[index] = static_cast<std::uint8_t>(best);
        put(key, best);
    }

    // Decides the group of each of these keys.
    SIEVE_CLONES void decide(std::size_t first, std::size_t end, float temperature, SplitMix64 random,
                             std::vector<Move>& moves) const {
        std::array<Positions, window> ring;
        for (std::size_t i = first; i < end + lookahead; i++) {
            if (i < end) locate(keys_[i], ring[i % window]);
            if (i < first + lookahead) continue;
            const std::size_t index = i - lookahead;
            const Positions& key = ring[index % window];
            const std::uint32_t to = elsewhere(key, choice_[index], temperature, random());
            if (to != choice_[index]) moves.push_back({index, static_cast<std::uint8_t>(to)});
        }
    }

    SIEVE_CLONES void make(const std::vector<Move>& moves) {
        Positions key;
        for (const Move& move : moves) {
            for (const std::uint32_t g : {std::uint32_t{choice_[move.index]}, std::uint32_t{move.to}})
                locate(keys_[move.index], key, g);
            take_out(key, choice_[move.index]);
            put(key, move.to);
            choice_[move.index] = move.to;
        }
    }

    // Returns another group for a key if moving there costs nothing, or no more than the temperature allows;
    // otherwise the key's own group. The key is not removed for the comparison: a counter that only this key
    // holds has the value one. (This overlooks bits that two of the key's own probes share. The comparison is
    // then less exact, but only in filters of a few lines.)
    [[gnu::always_inline]] [[nodiscard]] std::uint32_t
    elsewhere(const Positions& key, std::uint32_t own, float temperature, std::uint64_t random) const {
        const int own_cost = count(key.at[own], 1);
        if (own_cost == 0 && temperature == 0) return own;
        std::uint32_t best = own;
        float best_score = 1e9F;
        int best_cost = 0;
        for (std::uint32_t g = 0; g < groups_; g++) {
            if (g == own) continue;
            const int cost = count(key.at[g], 0);
            // At temperature 0 the noise only breaks ties.
            const float score = static_cast<float>(cost) - std::max(temperature, 1e-3F) * gumbel_(random);
            random >>= Noise::index_bits;
            if (score < best_score) {
                best = g;
                best_score = score;
                best_cost = cost;
            }
        }
        // Metropolis: accepted with probability exp(-loss / T).
        return static_cast<float>(best_cost - own_cost) > temperature * exponential_(random) ? own : best;
    }

    std::uint32_t below(std::uint32_t n) { return sieve_reduce(static_cast<std::uint32_t>(random_()), n); }

    std::span<const sieve_hash> keys_;
    std::uint32_t groups_;
    std::uint32_t hashes_;
    std::uint32_t lines_;
    std::uint32_t padded_; // hashes, rounded up to whole batches
    std::uint64_t nobody_; // the spare counter after the filter's own
    Coefficients coefficients_;
    NibbleCounters counters_;
    std::vector<std::uint8_t> choice_;
    SplitMix64 random_;
    std::uint32_t ties_ = 1;
    Noise gumbel_ = Noise::gumbel();
    Noise exponential_ = Noise::exponential();
};

} // namespace

BloomPlacementReport place_bloom(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                 std::span<sieve_line> filter, const BloomPlacementOptions& options,
                                 const Progress& progress) {
    assert(filter.size() == lookup.buckets);
    assert(sieve_bloom_valid(lookup.choices, lookup.hashes, lookup.buckets));
    BloomPlacement placement(keys, lookup, options.seed);
    BloomPlacementReport report;
    const std::uint32_t planned = lookup.choices > 1 && !keys.empty() ? options.rounds : 0;
    const double passes = planned + 1.0;
    placement.pass(Step::online, progress, 0, 1 / passes);
    report.online_ones = report.final_ones = placement.fraction_of_ones();
    const auto annealed =
        options.search == BloomSearch::annealed ? static_cast<std::uint32_t>(planned * annealing_share) : 0U;
    for (; report.rounds < planned; report.rounds++) {
        const double from = (report.rounds + 1) / passes;
        const double to = (report.rounds + 2) / passes;
        const float temperature =
            report.rounds < annealed
                ? std::lerp(start_temperature, end_temperature,
                            static_cast<float>(report.rounds + 1) / static_cast<float>(annealed))
                : 0;
        report.moved = options.search == BloomSearch::greedy
                           ? placement.pass(Step::greedy, progress, from, to)
                           : placement.move_all(temperature, progress, from, to);
    }
    if (planned > 0) report.final_ones = placement.fraction_of_ones();
    report.saturated = placement.counters().saturated();
    placement.counters().write(filter);
    return report;
}

double bloom_rate(double ones, std::uint32_t hashes, std::uint32_t groups) {
    return analysis::two_choice::fpp_given_ones(ones, hashes, groups);
}

} // namespace sieve
