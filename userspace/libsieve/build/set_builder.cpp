// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/set_builder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <vector>

#include <fmt/core.h>

#include <sieve/prefix.h>

#include "libsieve/build/measure.hpp"
#include "libsieve/build/promise.hpp"
#include "libsieve/filters/distinct_hashes.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/sizing.hpp"
#include "libsieve/util/huge_array.hpp"
#include "libsieve/util/parallel.hpp"
#include "libsieve/util/secret.hpp"
#include "libsieve/util/shortage.hpp"

namespace sieve {

namespace {

// All randomness of a build, in the order in which it is drawn.
struct BuildSecret {
    std::array<__u64, SIEVE_HASH_KEY_WORDS> hash_key;
    std::array<std::uint64_t, 2> identity;
    std::uint64_t placement;
    std::uint64_t witnesses;
    std::uint64_t measurement;
};

Result<BuildSecret> draw_build_secret(std::optional<std::uint64_t> seed) {
    std::array<std::uint64_t, sizeof(BuildSecret) / sizeof(std::uint64_t)> words{};
    SIEVE_TRY(draw_secret(seed, words));
    BuildSecret secret{};
    static_assert(sizeof(words) == sizeof(secret));
    std::memcpy(&secret, words.data(), sizeof(secret));
    return secret;
}

// What a filter is built from, for keys and for prefixes alike.
struct Material {
    std::uint32_t fields = 0;
    HugeArray<sieve_hash> hashes;     // of everything to be stored: in hash_order, distinct
    std::uint64_t hashed = 0;         // number of hashes before repetitions were dropped
    std::vector<sieve_key> witnesses; // members
    sieve_probes probes{};            // of a prefix set
    std::uint64_t entries = 0;        // of the feed
    double covered[SIEVE_FAMILIES] = {0, 0};
    std::function<bool(const sieve_key&)> is_member; // of a prefix set; other sets search `hashes`

    // The most probes that a packet makes; 0 if keys are exact.
    [[nodiscard]] std::uint32_t most_probes() const { return std::max(probes.count[0], probes.count[1]); }
};

// Collects distinct members until there are enough of them.
class Witnesses {
  public:
    explicit Witnesses(std::uint32_t wanted) : wanted_(wanted) {}

    [[nodiscard]] bool enough() const { return keys_.size() >= wanted_; }
    void add(const sieve_key& key) {
        if (seen_.insert({std::begin(key.word), std::end(key.word)}).second) keys_.push_back(key);
    }
    // Adds the keys that `draw` returns. Stops early if `draw` keeps returning the same keys: a few keys may
    // make up nearly all of a list.
    template <class Draw>
    void add_drawn(const Draw& draw) {
        for (std::uint32_t draws = 0; draws / most_draws_each < wanted_ && !enough(); draws++) add(draw());
    }
    [[nodiscard]] std::vector<sieve_key> take() { return std::move(keys_); }

  private:
    static constexpr std::uint32_t most_draws_each = 16;

    std::uint32_t wanted_;
    std::vector<sieve_key> keys_;
    std::set<std::vector<__u64>> seen_;
};

Material material_of(KeySet keys, const BuildSecret& secret) {
    Material material;
    material.fields = keys.fields();
    material.entries = keys.size();
    material.hashes = distinct_hashes(keys, secret.hash_key.data());
    material.hashed = keys.size();
    Witnesses witnesses(witness_count(material.hashes.size()));
    std::mt19937_64 pick(secret.witnesses);
    witnesses.add_drawn([&] { return keys.at(pick() % keys.size()); });
    for (std::size_t i = 0; i < keys.size() && !witnesses.enough(); i++) witnesses.add(keys.at(i));
    material.witnesses = witnesses.take();
    keys.clear();
    return material;
}

sieve_key key_of(uint128 address, std::uint32_t fields) {
    sieve_key key{};
    key.word[sieve_address_word(fields)] = static_cast<std::uint64_t>(address >> 64);
    key.word[sieve_address_word(fields) + 1] = static_cast<std::uint64_t>(address);
    return key;
}

// One address out of all members. Every range is equally likely.
sieve_key random_member(const PrefixPlan& plan, std::uint32_t fields, std::mt19937_64& random) {
    const std::size_t index = random() % (plan.members[0].size() + plan.members[1].size());
    const AddressRange& range = index < plan.members[0].size()
                                    ? plan.members[0][index]
                                    : plan.members[1][index - plan.members[0].size()];
    const uint128 span = range.last - range.first;
    const uint128 draw = static_cast<uint128>(random()) << 64 | random();
    return key_of(range.first + (span == ~uint128{0} ? draw : draw % (span + 1)), fields);
}

Result<Material> material_of(KeySet singles, std::vector<AddressRange> ranges, const BuildOptions& options,
                             const BuildSecret& secret) {
    Material material;
    material.fields = singles.fields();
    material.entries = singles.size() + ranges.size();
    const int word = sieve_address_word(material.fields);
    ranges.reserve(material.entries);
    for (std::size_t i = 0; i < singles.size(); i++) {
        const sieve_key key = singles.at(i);
        const uint128 address = address_number(key.word[word], key.word[word + 1]);
        ranges.push_back({address, address});
    }
    singles.clear();
    SIEVE_ASSIGN(PrefixPlan planned, plan_prefixes(std::move(ranges), options.prefixes));
    const auto plan = std::make_shared<const PrefixPlan>(std::move(planned));
    material.probes = plan->probes;
    std::copy(std::begin(plan->covered), std::end(plan->covered), material.covered);
    HugeArray<sieve_hash> hashes(plan->keys);
    expand_prefixes(*plan, [&](std::uint64_t upper, std::uint64_t lower, std::uint32_t length) {
        hashes[material.hashed++] = sieve_hash_prefix(upper, lower, length, secret.hash_key.data());
    });
    hashes.truncate(material.hashed);
    material.hashes = distinct_hashes(std::move(hashes));
    // There are at least as many addresses as prefixes.
    Witnesses witnesses(witness_count(plan->keys));
    std::mt19937_64 random(secret.witnesses);
    witnesses.add_drawn([&] { return random_member(*plan, material.fields, random); });
    for (const auto& members : plan->members)
        for (const AddressRange& range : members)
            for (uint128 address = range.first; !witnesses.enough(); address++) {
                witnesses.add(key_of(address, material.fields));
                if (address == range.last) break;
            }
    material.witnesses = witnesses.take();
    material.is_member = [plan, word](const sieve_key& key) {
        return is_member(*plan, address_number(key.word[word], key.word[word + 1]));
    };
    return material;
}

// How many lines the options ask for. If the options give a rate, each of a packet's probes gets a share of
// it.
Result<std::uint64_t> choose_lines(const Material& material, const KindBuilder& builder,
                                   const BuildOptions& options) {
    const std::uint64_t keys = material.hashes.size();
    if (options.fpr)
        return builder.lines_for_fpr(keys,
                                     rate_of_one_probe(*options.fpr, std::max(1U, material.most_probes())));
    if (options.memory) {
        const std::uint64_t overhead = SIEVE_FIRST_LINE + material.witnesses.size();
        const std::uint64_t total = *options.memory / sizeof(sieve_line);
        const std::uint64_t least = builder.lines_for_bits(keys, least_bits_per_key);
        if (total < overhead + least)
            return invalid_request(
                fmt::format("{} bytes are too few for {} keys; the least is {} bytes (1 bit per key)",
                            *options.memory, keys, (overhead + least) * sizeof(sieve_line)));
        return builder.usable_lines(total - overhead);
    }
    const double standard = kind_of(options.kind.kind).facts().bits_per_key;
    return builder.lines_for_bits(keys, options.bits_per_key.value_or(standard));
}

// Line 0, without the filter's own geometry.
void fill_lookup(Image& image, const Material& material, const BuildSecret& secret) {
    sieve_lookup& lookup = image.lookup();
    lookup.fields = static_cast<std::uint8_t>(material.fields);
    lookup.probes = static_cast<std::uint8_t>(material.most_probes());
    std::copy(secret.hash_key.begin(), secret.hash_key.end(), lookup.hash_key);
    image.probes() = material.probes;
    for (std::size_t i = 0; i < material.witnesses.size(); i++)
        image.witnesses()[i].key = material.witnesses[i];
}

void fill_file(sieve_file& file, const Material& material, const BuildReport& report,
               const BuildOptions& options, const BuildSecret& secret) {
    file.keys = report.keys;
    file.entries = report.entries;
    file.duplicates = report.duplicates;
    file.skipped = options.skipped;
    file.rounds = report.rounds;
    // With a seed, the build must be reproducible to the byte.
    file.built_at = options.seed ? 0 : static_cast<std::uint64_t>(std::time(nullptr));
    std::copy(secret.identity.begin(), secret.identity.end(), file.identity);
    file.predicted_fpr = rate_to_bits(report.predicted_fpr);
    file.expected_fpr = rate_to_bits(report.expected_fpr);
    file.measured_fpr = rate_to_bits(report.measured_fpr);
    file.measured_trials = report.measured_trials;
    for (int family = 0; family < SIEVE_FAMILIES; family++)
        file.covered[family] = rate_to_bits(material.covered[family]);
    std::memcpy(file.label, options.label.data(), std::min(options.label.size(), sizeof(file.label) - 1));
}

Result<BuiltSet> build(Material material, const KindBuilder& builder, const BuildOptions& options,
                       const BuildSecret& secret, const Progress& progress) {
    BuildReport report;
    report.keys = material.hashes.size();
    report.duplicates = material.hashed - report.keys;
    report.entries = material.entries;
    report.probes = material.probes;
    SIEVE_ASSIGN(const std::uint64_t lines, choose_lines(material, builder, options));
    if (lines > std::numeric_limits<std::uint32_t>::max() - SIEVE_FIRST_LINE - material.witnesses.size())
        return invalid_request(fmt::format("{} lines of 64 bytes are more than a BPF map can hold", lines));
    report.bits_per_key = bits_per_key_of(report.keys, lines);

    SIEVE_ASSIGN(Image image, Image::create(lines, static_cast<std::uint32_t>(material.witnesses.size())));
    fill_lookup(image, material, secret);
    SIEVE_TRY(builder.describe(report.keys, lines, image.lookup()));
    const sieve_lookup& lookup = image.lookup();
    if (const std::string fault = geometry_fault(lookup); !fault.empty()) return invalid_request(fault);
    const std::uint32_t probes = std::max(1U, material.most_probes());
    report.model_fpr = builder.model_fpr(report.keys, lookup);
    if (report.model_fpr) report.model_fpr = rate_of_probes(std::min(1.0, *report.model_fpr), probes);
    report.predicted_fpr = rate_of_probes(builder.predict_fpr(report.keys, lookup), probes);
    SIEVE_ASSIGN(report.rounds, builder.fill({material.hashes.data(), material.hashes.size()}, lookup,
                                             image.filter(), secret.placement, progress));

    image.file().keys = report.keys; // expected_fpr depends on it
    report.expected_fpr = expected_fpr(image);
    const auto is_stored = [&](const sieve_key& key) {
        const sieve_hash hash = sieve_hash_key(&key, lookup.hash_key, material.fields);
        return std::binary_search(material.hashes.begin(), material.hashes.end(), hash, hash_order);
    };
    const Measurement measured = measure_fpr(
        image, options.trials, secret.measurement,
        material.is_member ? material.is_member : std::function<bool(const sieve_key&)>(is_stored));
    report.measured_hits = measured.hits;
    report.measured_trials = measured.trials;
    report.measured_fpr = measured.rate();
    SIEVE_TRY(check_promise(image, report));

    fill_file(image.file(), material, report, options, secret);
    image.seal();
    SIEVE_TRY(image.check("built image"));
    return BuiltSet{std::move(image), report};
}

} // namespace

Status check_build_options(const BuildOptions& options) {
    if ((options.bits_per_key ? 1 : 0) + (options.fpr ? 1 : 0) + (options.memory ? 1 : 0) > 1)
        return invalid_request("give only one of bits per key, false positive rate and memory");
    if (options.bits_per_key &&
        !(*options.bits_per_key >= least_bits_per_key && *options.bits_per_key <= most_bits_per_key))
        return invalid_request(fmt::format("{} bits per key, expected {} to {}", *options.bits_per_key,
                                           least_bits_per_key, most_bits_per_key));
    if (options.fpr && !(*options.fpr >= least_fpr && *options.fpr < 1))
        return invalid_request(fmt::format("a false positive rate of {}, expected one from {} to below 1",
                                           *options.fpr, least_fpr));
    if (options.prefixes.max_probes < 1 || options.prefixes.max_probes > SIEVE_MAX_PROBES)
        return invalid_request(
            fmt::format("{} probes, expected 1 to {}", options.prefixes.max_probes, SIEVE_MAX_PROBES));
    SIEVE_TRY(kind_builder(options.kind));
    return {};
}

Result<BuiltSet> build_set(KeySet keys, std::vector<AddressRange> ranges, const BuildOptions& options,
                           const Progress& progress) {
    SIEVE_TRY(check_build_options(options));
    if (keys.empty() && ranges.empty()) return bad_input("no keys to build a set of");
    if (const KindFacts& facts = kind_of(options.kind.kind).facts(); !ranges.empty() && !facts.takes_prefixes)
        return invalid_request(
            fmt::format("the list has prefixes or ranges, which kind {} cannot hold, only kind {} can",
                        facts.name, names_of_kinds([](const KindFacts& f) { return f.takes_prefixes; })));
    const ThreadLimit threads(options.threads);
    SIEVE_ASSIGN(const std::unique_ptr<KindBuilder> builder, kind_builder(options.kind));
    SIEVE_ASSIGN(const BuildSecret secret, draw_build_secret(options.seed));
    const std::uint64_t entries = keys.size() + ranges.size();
    try {
        if (ranges.empty())
            return build(material_of(std::move(keys), secret), *builder, options, secret, progress);
        SIEVE_ASSIGN(Material material, material_of(std::move(keys), std::move(ranges), options, secret));
        return build(std::move(material), *builder, options, secret, progress);
    } catch (const std::exception& problem) {
        if (!is_shortage(problem)) throw; // a bug; the program reports it
        return failure(
            ErrorKind::out_of_memory,
            fmt::format("building a filter of {} entries takes more memory than there is", entries));
    }
}

Result<BuiltSet> build_set(KeySet keys, const BuildOptions& options, const Progress& progress) {
    return build_set(std::move(keys), {}, options, progress);
}

} // namespace sieve
