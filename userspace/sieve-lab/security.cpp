// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Attacks on the product's own filters: docs/security.md.
#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>
#include <sieve/hash.h>

#include "libsieve/build/set_builder.hpp"
#include "sieve-lab/experiment.hpp"
#include "sieve-lab/simulations/adaptive_attacker.hpp"
#include "sieve-lab/simulations/bloom_schemes.hpp"

namespace sieve::lab {
namespace {

using namespace experiments;

constexpr std::uint64_t set_keys = 100'000;
constexpr std::uint64_t attack_queries = 10'000'000;

struct Scene {
    std::string name;
    sieve_kind kind = SIEVE_KIND_BLOCKED;
    std::optional<std::uint32_t> choices{};
    std::uint32_t fields = SIEVE_FIELD_SRC;
    KeySpace space = KeySpace::ipv4_source();
};

std::vector<Scene> scenes() {
    return {
        {"blocked", SIEVE_KIND_BLOCKED},
        {"blocked, one choice", SIEVE_KIND_BLOCKED, 1},
        {"bloom", SIEVE_KIND_BLOOM},
        {"dleft64", SIEVE_KIND_DLEFT64},
        {"dleft128", SIEVE_KIND_DLEFT128},
        {"ddlcbf", SIEVE_KIND_DDLCBF},
        {"xorsat", SIEVE_KIND_XORSAT},
        {"blocked, IPv6", SIEVE_KIND_BLOCKED, {}, SIEVE_FIELD_SRC, KeySpace::ipv6_source()},
        {"blocked, flows", SIEVE_KIND_BLOCKED, {}, SIEVE_FIELD_ALL, KeySpace::ipv4_tcp_flow()},
        {"xorsat, IPv6", SIEVE_KIND_XORSAT, {}, SIEVE_FIELD_SRC, KeySpace::ipv6_source()},
        {"xorsat, flows", SIEVE_KIND_XORSAT, {}, SIEVE_FIELD_ALL, KeySpace::ipv4_tcp_flow()},
    };
}

/// Half of the keys are random; the other half are runs of 100 neighbours, as lists of addresses have them.
std::vector<sieve_key> draw_members(const KeySpace& space, Random& random) {
    constexpr std::uint64_t run = 100;
    const std::size_t last = space.fields().size() - 1;
    std::vector<sieve_key> members;
    while (members.size() < set_keys / 2) members.push_back(space.random(random));
    while (members.size() < set_keys) {
        const sieve_key first = space.random(random);
        for (std::uint64_t i = 0; i < run; i++)
            members.push_back(space.with(first, last, space.get(first, last) + i));
    }
    return members;
}

BuiltSet must_build(Result<BuiltSet> built) {
    if (!built) throw std::runtime_error(built.error().message);
    return std::move(*built);
}

/// Two builds of the same keys: the attacked one, and one whose false positives are replayed against it.
std::vector<double> play_all(const Scene& scene, Random& random) {
    const std::vector<sieve_key> members = draw_members(scene.space, random);
    KeySet keys(scene.fields);
    for (const sieve_key& key : members) keys.add(key);
    BuildOptions options;
    options.bits_per_key = 16;
    options.kind.kind = scene.kind;
    options.kind.choices = scene.choices;
    options.threads = 1;
    options.seed = random();
    const BuiltSet attacked = must_build(build_set(keys, options, {}));
    options.seed = random();
    const BuiltSet other = must_build(build_set(keys, options, {}));

    std::vector<sieve_key> sorted = members;
    const auto before = [](const sieve_key& a, const sieve_key& b) {
        return std::lexicographical_compare(a.word, a.word + SIEVE_KEY_WORDS, b.word,
                                            b.word + SIEVE_KEY_WORDS);
    };
    std::sort(sorted.begin(), sorted.end(), before);
    const auto target_of = [&](const BuiltSet& set) {
        return Target{.matches = [&set](const sieve_key& key) { return set.image.contains(key); },
                      .is_member =
                          [&](const sieve_key& key) {
                              return std::binary_search(sorted.begin(), sorted.end(), key, before);
                          },
                      .members = members,
                      .elsewhere = {}};
    };
    Target target = target_of(attacked);
    target.elsewhere =
        attack(target_of(other), scene.space, Strategy::oblivious, attack_queries, random).positives;
    std::vector<double> seen = {attacked.report.predicted_fpr, attacked.report.expected_fpr};
    for (const Strategy strategy : all_strategies) {
        const Attack played = attack(target, scene.space, strategy, attack_queries, random);
        seen.push_back(static_cast<double>(played.hits));
        seen.push_back(static_cast<double>(played.chosen));
    }
    return seen;
}

double total(const Observations& observed, std::size_t at) {
    double sum = 0;
    for (const auto& trial : observed.by_trial) sum += trial[at];
    return sum;
}

std::string in_print(double rate) {
    return fmt::format("{:.4e}", rate);
}

/// The rate of all trials together, next to the rate that the filters' bits promise.
Row attack_row(std::string quantity, double promised, double hits, double chosen,
               std::string explanation = {}) {
    return measured(std::move(quantity), in_print(promised), chosen == 0 ? 0 : hits / chosen,
                    chosen == 0 ? 0 : counting_error(promised, chosen), 0, std::move(explanation));
}

Outcome adaptive_attacker(const TrialPlan& plan) {
    Outcome outcome;
    double worst = 0;
    for (const Scene& scene : scenes()) {
        const auto observed =
            run_trials(plan, scene.name, [&](Random& random) { return play_all(scene, random); });
        const double expected = observed.of(1).mean();
        outcome.rows.push_back(only_ours(scene.name + ": predicted before the build", observed.of(0).mean()));
        std::size_t at = 2;
        for (const Strategy strategy : all_strategies) {
            Row row = attack_row(fmt::format("{}: {}", scene.name, name(strategy)), expected,
                                 total(observed, at), total(observed, at + 1));
            if (strategy != Strategy::oblivious) worst = std::max(worst, row.sigma);
            outcome.rows.push_back(std::move(row));
            at += 2;
        }
    }
    outcome.claims.push_back(
        {"no strategy finds non-members that match more often than the bits promise",
         fmt::format("the largest excess of a strategy is {:.1f} standard errors", worst),
         worst <= most_sigmas, ""});
    outcome.notes.push_back(fmt::format("{} keys at 16 bits a key, {} verdicts a strategy. *Promised* is the "
                                        "exact rate of random keys, from the "
                                        "filters' bits (the header's expected rate); *ours* is the share of "
                                        "the attacker's own choices that match. "
                                        "Members, and false positives that it knew already, do not count.",
                                        set_keys, attack_queries));
    return outcome;
}

/// The control: the same game against filters that have structure, which the attacks must find.
///
/// This one is a Bloom filter of the product's compression without its finaliser.
class UnmixedBloom {
  public:
    UnmixedBloom(const std::vector<sieve_key>& members, Random& random)
        : bits_(std::uint64_t{1} << bits_log) {
        for (auto& word : hash_key_) word = random();
        for (const sieve_key& key : members)
            probe(key, [&](std::uint64_t bit) { return bits_.set(bit), true; });
    }
    [[nodiscard]] bool contains(const sieve_key& key) const {
        return probe(key, [&](std::uint64_t bit) { return bits_[bit]; });
    }
    [[nodiscard]] double rate() const {
        return std::pow(static_cast<double>(bits_.ones()) / static_cast<double>(bits_.size()), hashes);
    }

  private:
    static constexpr int bits_log = 21; // 100,000 keys: 21 bits a key
    static constexpr int hashes = 8;

    template <typename Visit>
    bool probe(const sieve_key& key, Visit&& visit) const {
        std::uint64_t at = sieve_nh_step(key.word[1], hash_key_[1]);
        const std::uint64_t step = sieve_nh_step(key.word[1], hash_key_[2]);
        for (int i = 0; i < hashes; i++, at += step)
            if (!visit(at >> (64 - bits_log))) return false;
        return true;
    }

    schemes::BitVector bits_;
    std::uint64_t hash_key_[3]{};
};

constexpr std::uint64_t limit_queries = 1'000'000;

/// One game against a filter without a finaliser: its rate, its false positives, its choices.
std::vector<double> attack_unmixed(Random& random) {
    const KeySpace space = KeySpace::ipv4_source();
    std::vector<sieve_key> members;
    while (members.size() < set_keys) members.push_back(space.random(random));
    const UnmixedBloom filter(members, random);
    const Target target{.matches = [&](const sieve_key& key) { return filter.contains(key); },
                        .is_member = [](const sieve_key&) { return false; },
                        .members = {},
                        .elsewhere = {}};
    const Attack played = attack(target, space, Strategy::near_hits, limit_queries, random);
    return {filter.rate(), static_cast<double>(played.hits), static_cast<double>(played.chosen)};
}

/// Random /24 networks.
std::vector<AddressRange> random_networks(Random& random) {
    std::vector<AddressRange> ranges;
    for (std::uint64_t i = 0; i < set_keys; i++) {
        const uint128 first =
            address_number(0, sieve_v4_mapped(static_cast<std::uint32_t>(random()) & ~0xffU));
        ranges.push_back({first, first + 0xff});
    }
    return ranges;
}

/// The space of /24 networks, with one address for each.
KeySpace networks_of_24() {
    sieve_key form{};
    form.word[1] = sieve_v4_mapped(1);
    return KeySpace(form, {{1, 8, 24}});
}

/// Two games against a set of /24 prefixes, by attackers who choose addresses and by attackers who choose
/// networks. Gives the rate, then false positives and choices of each.
std::vector<double> attack_prefixes(Random& random) {
    const std::vector<AddressRange> ranges = random_networks(random);
    BuildOptions options;
    options.threads = 1;
    options.seed = random();
    const BuiltSet set = must_build(build_set(KeySet(SIEVE_FIELD_SRC), ranges, options, {}));
    std::vector<std::uint64_t> starts;
    starts.reserve(ranges.size());
    for (const AddressRange& range : ranges) starts.push_back(static_cast<std::uint64_t>(range.first));
    std::sort(starts.begin(), starts.end());
    const Target target{.matches = [&](const sieve_key& key) { return set.image.contains(key); },
                        .is_member =
                            [&](const sieve_key& key) {
                                return std::binary_search(starts.begin(), starts.end(),
                                                          key.word[1] & ~std::uint64_t{0xff});
                            },
                        .members = {},
                        .elsewhere = {}};
    const Attack near = attack(target, KeySpace::ipv4_source(), Strategy::near_hits, limit_queries, random);
    const Attack by_network = attack(target, networks_of_24(), Strategy::near_hits, limit_queries, random);
    return {set.report.expected_fpr, static_cast<double>(near.hits), static_cast<double>(near.chosen),
            static_cast<double>(by_network.hits), static_cast<double>(by_network.chosen)};
}

Outcome attacker_limits(const TrialPlan& plan) {
    Outcome outcome;
    const auto control = run_trials(plan, "without a finaliser", attack_unmixed);
    outcome.rows.push_back(
        attack_row("NH without a finaliser, bloom: near hits", control.of(0).mean(), total(control, 1),
                   total(control, 2),
                   "The control: it shows that the strategies find structure where there is some, "
                   "and what the finaliser is for."));
    const auto prefixes = run_trials(plan, "prefixes", attack_prefixes);
    outcome.rows.push_back(attack_row(
        "set of /24 prefixes: near hits", prefixes.of(0).mean(), total(prefixes, 1), total(prefixes, 2),
        "A false positive of a probe of length L is one of the whole prefix: the promise is about "
        "prefixes of that length, not about addresses. `verify` removes it."));
    outcome.rows.push_back(attack_row("set of /24 prefixes: near hits, one address a prefix",
                                      prefixes.of(0).mean(), total(prefixes, 3), total(prefixes, 4)));
    outcome.notes.emplace_back(
        "Where a promise of the rate ends. One million verdicts an attack, 100,000 keys or prefixes.");
    return outcome;
}

} // namespace

std::vector<Experiment> security_experiments() {
    return {
        {"adaptive-attacker", "Attackers who choose packets by the verdicts on earlier ones",
         "Naor, Yogev, Bloom Filters in Adversarial Environments, section 2", 1, 4, adaptive_attacker,
         Subject::attacks},
        {"attacker-limits", "Where the promised rate ends, and a control",
         "Naor, Yogev, Bloom Filters in Adversarial Environments, section 2", 4, 20, attacker_limits,
         Subject::attacks},
    };
}

} // namespace sieve::lab
