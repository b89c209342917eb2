// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/set_builder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <sieve/prefix.h>

#include "libsieve/build/build_secret.hpp"
#include "libsieve/build/check_built.hpp"
#include "libsieve/build/default_kind.hpp"
#include "libsieve/build/measure.hpp"
#include "libsieve/build/promise.hpp"
#include "libsieve/build/random_keys.hpp"
#include "libsieve/build/spilled_keys.hpp"
#include "libsieve/build/witness_draw.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/placement/distinct_hashes.hpp"
#include "libsieve/filters/placement/hash_sum.hpp"
#include "libsieve/filters/prefixes/entry_probes.hpp"
#include "libsieve/filters/prefixes/key_expansion.hpp"
#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/filters/sizing.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/keys/key_order.hpp"
#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/parallel/parallel_sort.hpp"
#include "libsieve/util/results/out_of_memory.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

namespace {

// What a filter is built from, for keys and for prefixes alike.
struct Material {
    std::uint32_t fields = 0;
    // Of everything to be stored: in hash_order, distinct unless the kind counts.
    HugeArray<sieve_hash> hashes{};
    std::uint64_t keys = 0;                            // number of these hashes, in memory or on disk
    HashSum sum{};                                     // of these hashes
    std::uint64_t hashed = 0;                          // number of hashes before repetitions were dropped
    std::vector<sieve_key> witnesses{};                // members
    sieve_probes probes{};                             // of a prefix set
    std::uint64_t entries = 0;                         // of the feed
    double covered[SIEVE_FAMILIES] = {0, 0};           // of a set of one address
    std::function<bool(const sieve_key&)> is_member{}; // of a prefix set; other sets search `hashes`

    // The most probes that a packet makes; 0 if keys are exact.
    [[nodiscard]] std::uint32_t most_probes() const { return std::max(probes.count[0], probes.count[1]); }
};

// Hashes in memory: in hash_order, distinct.
void take_hashes(Material& material, HugeArray<sieve_hash> hashes) {
    material.hashes = std::move(hashes);
    material.keys = material.hashes.size();
    material.sum = sum_of({material.hashes.data(), material.hashes.size()});
}

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

// Where material comes from. A build may ask for it several times, under other hash keys.
class Source {
  public:
    virtual ~Source() = default;
    // The secret of the next filter.
    virtual Result<BuildSecret> draw(std::optional<std::uint64_t> seed) { return draw_build_secret(seed); }
    // `last`: hardly anybody will ask again, so that the members may go where they take much memory.
    virtual Result<Material> hash(const BuildSecret& secret, bool last) = 0;
    // Whether the members are still there.
    [[nodiscard]] virtual bool can_hash_again() const { return true; }
    // Places the material's keys in the image, and returns the rounds of rebalancing.
    virtual Result<std::uint32_t> place(const Material& material, const KindBuilder& builder, Image& image,
                                        std::uint64_t seed, const Progress& progress) {
        return builder.fill({material.hashes.data(), material.hashes.size()}, image.lookup(), image.filter(),
                            seed, progress);
    }
    // What kept Material::is_member() from telling members, which cannot say so itself.
    [[nodiscard]] virtual Status check() const { return {}; }
};

class KeySource final : public Source {
  public:
    explicit KeySource(KeySet keys) : keys_(std::move(keys)) {}

    Result<Material> hash(const BuildSecret& secret, bool last) override {
        Material material;
        material.fields = keys_.fields();
        material.entries = keys_.size();
        take_hashes(material, distinct_hashes(keys_, secret.hash_key.data()));
        material.hashed = keys_.size();
        WitnessDraw witnesses(secret);
        witnesses.add(keys_);
        material.witnesses = witnesses.take(material.keys);
        if (last && keys_.size() > most_kept) keys_.clear();
        return material;
    }
    [[nodiscard]] bool can_hash_again() const override { return keys_.size() > 0; }

  private:
    static constexpr std::size_t most_kept = std::size_t{1} << 20;

    KeySet keys_;
};

// Keys on disk.
class SpilledSource final : public Source {
  public:
    SpilledSource(SpilledKeys keys, const Progress& progress) : keys_(std::move(keys)), progress_(progress) {}

    // The first secret is the one under which the keys were hashed while they were read.
    Result<BuildSecret> draw(std::optional<std::uint64_t> seed) override {
        return std::exchange(first_, false) ? keys_.secret() : draw_build_secret(seed);
    }

    Result<Material> hash(const BuildSecret& secret, bool) override {
        if (secret.hash_key != keys_.secret().hash_key) SIEVE_TRY(keys_.hash_again(secret));
        if (progress_) progress_("sorting", 0);
        SIEVE_TRY(keys_.sort());
        Material material;
        material.fields = keys_.fields();
        material.keys = keys_.hashes().size();
        material.sum = keys_.hashes().sum();
        material.hashed = material.entries = keys_.entries();
        material.witnesses = keys_.witnesses();
        material.is_member = [this](const sieve_key& key) { return holds(key); };
        return material;
    }

    Result<std::uint32_t> place(const Material&, const KindBuilder& builder, Image& image, std::uint64_t seed,
                                const Progress& progress) override {
        return keys_.place(builder, image, seed, progress);
    }

    [[nodiscard]] Status check() const override {
        if (failed_) return tl::unexpected(*failed_);
        return {};
    }

  private:
    bool holds(const sieve_key& key) {
        const auto held =
            keys_.hashes().holds(sieve_hash_key(&key, keys_.secret().hash_key.data(), keys_.fields()));
        if (held) return *held;
        const std::lock_guard lock(mutex_);
        failed_ = held.error();
        return false;
    }

    SpilledKeys keys_;
    const Progress& progress_;
    bool first_ = true;
    std::mutex mutex_;
    std::optional<Error> failed_;
};

sieve_key key_of(uint128 address, std::uint32_t fields) {
    sieve_key key{};
    key.word[sieve_address_word(fields)] = static_cast<std::uint64_t>(address >> 64);
    key.word[sieve_address_word(fields) + 1] = static_cast<std::uint64_t>(address);
    return key;
}

// An address of the range that is drawn at random, of the range's family.
uint128 random_address(const AddressRange& range, std::mt19937_64& random) {
    const uint128 span = range.last - range.first;
    const uint128 draw = static_cast<uint128>(random()) << 64 | random();
    const uint128 address = range.first + (span == ~uint128{0} ? draw : draw % (span + 1));
    if (!is_ipv4(address) || family_of(range) == SIEVE_FAMILY_V4) return address;
    return is_ipv4(range.first) ? range.last : range.first;
}

// One address out of all members. Every range is equally likely.
sieve_key random_member(const AddressSet& plan, std::uint32_t fields, std::mt19937_64& random) {
    const std::size_t index = random() % (plan.members[0].size() + plan.members[1].size());
    const AddressRange& range = index < plan.members[0].size()
                                    ? plan.members[0][index]
                                    : plan.members[1][index - plan.members[0].size()];
    return key_of(random_address(range, random), fields);
}

// Single addresses and ranges together, as ranges.
std::vector<AddressRange> all_ranges(KeySet singles, std::vector<AddressRange> ranges) {
    const int word = sieve_address_word(singles.fields());
    ranges.reserve(ranges.size() + singles.size());
    for (std::size_t i = 0; i < singles.size(); i++) {
        const sieve_key key = singles.at(i);
        const uint128 address = address_number(key.word[word], key.word[word + 1]);
        ranges.push_back({address, address});
    }
    return ranges;
}

// Witnesses of a set of addresses, which has at least `wanted` of them.
std::vector<sieve_key> address_witnesses(const AddressSet& set, std::uint32_t wanted, std::uint32_t fields,
                                         std::uint64_t seed) {
    Witnesses witnesses(wanted);
    std::mt19937_64 random(seed);
    witnesses.add_drawn([&] { return random_member(set, fields, random); });
    for (const auto& members : set.members)
        for (const AddressRange& range : members) {
            const bool v6 = family_of(range) == SIEVE_FAMILY_V6;
            for (uint128 address = range.first; !witnesses.enough(); address++) {
                if (v6 && is_ipv4(address))
                    address = std::min(all_ipv4.last, range.last);
                else
                    witnesses.add(key_of(address, fields));
                if (address == range.last) break;
            }
        }
    return witnesses.take();
}

std::function<bool(const sieve_key&)> asks_members(std::shared_ptr<const AddressSet> set,
                                                   std::uint32_t fields) {
    return [set = std::move(set), word = sieve_address_word(fields)](const sieve_key& key) {
        return is_member(*set, address_number(key.word[word], key.word[word + 1]));
    };
}

class PrefixSource final : public Source {
  public:
    static Result<std::unique_ptr<Source>> of(KeySet singles, std::vector<AddressRange> ranges,
                                              const PrefixLimits& limits) {
        const std::uint32_t fields = singles.fields();
        const std::uint64_t entries = singles.size() + ranges.size();
        ranges = all_ranges(std::move(singles), std::move(ranges));
        SIEVE_ASSIGN(PrefixPlan plan, plan_prefixes(std::move(ranges), limits));
        return std::make_unique<PrefixSource>(std::move(plan), fields, entries);
    }

    PrefixSource(PrefixPlan plan, std::uint32_t fields, std::uint64_t entries)
        : plan_(std::make_shared<const PrefixPlan>(std::move(plan))), fields_(fields), entries_(entries) {}

    Result<Material> hash(const BuildSecret& secret, bool) override {
        Material material;
        material.fields = fields_;
        material.entries = entries_;
        material.probes = plan_->probes;
        std::copy(std::begin(plan_->covered), std::end(plan_->covered), material.covered);
        HugeArray<sieve_hash> hashes(plan_->keys);
        expand_prefixes(*plan_, [&](std::uint64_t upper, std::uint64_t lower, std::uint32_t length) {
            hashes[material.hashed++] = sieve_hash_prefix(upper, lower, length, secret.hash_key.data());
        });
        hashes.truncate(material.hashed);
        take_hashes(material, distinct_hashes(std::move(hashes)));
        material.witnesses = address_witnesses(*plan_, witness_count(plan_->keys), fields_, secret.witnesses);
        material.is_member = asks_members(plan_, fields_);
        return material;
    }

  private:
    std::shared_ptr<const PrefixPlan> plan_;
    std::uint32_t fields_;
    std::uint64_t entries_;
};

// The number of addresses of a set, up to `most`.
std::uint64_t count_addresses(const AddressSet& set, std::uint64_t most) {
    std::uint64_t count = 0;
    for (const auto& members : set.members)
        for (const AddressRange& range : members) {
            const uint128 more = range.last - range.first;
            if (more >= most - count) return most;
            count += static_cast<std::uint64_t>(more) + 1;
        }
    return std::min(count, most);
}

// A member of the range that is drawn at random. Fields that it leaves open get a value that a packet can
// have.
sieve_key random_member(const KeyRange& range, std::uint32_t fields, std::mt19937_64& random) {
    const auto is_v6 = [&](std::uint32_t field, const AddressRange& addresses) {
        return (range.fields & field) != 0 && family_of(addresses) == SIEVE_FAMILY_V6;
    };
    const bool v6 = is_v6(SIEVE_FIELD_SRC, range.source) || is_v6(SIEVE_FIELD_DST, range.destination);
    const AddressRange any =
        v6 ? AddressRange{address_number(0x2000000000000000, 0),
                          address_number(0x3fffffffffffffff, ~std::uint64_t{0})}
           : AddressRange{all_ipv4.first + (std::uint64_t{1} << 24), all_ipv4.first + 0xdfffffff};
    sieve_key key{};
    const auto put = [&](std::uint32_t field, int word, const AddressRange& given) {
        if ((fields & field) == 0) return;
        const uint128 address = random_address((range.fields & field) != 0 ? given : any, random);
        key.word[word] = static_cast<std::uint64_t>(address >> 64);
        key.word[word + 1] = static_cast<std::uint64_t>(address);
    };
    put(SIEVE_FIELD_SRC, 0, range.source);
    put(SIEVE_FIELD_DST, 2, range.destination);
    const std::uint64_t open = sieve_transport_mask(fields & ~range.fields & SIEVE_FIELD_PORTS) & random();
    const std::uint64_t protocol =
        (fields & ~range.fields & SIEVE_FIELD_PROTO) != 0 ? (random() % 2 == 0 ? 6 : 17) : 0;
    key.word[4] = range.transport | open | protocol;
    return key;
}

// Prefixes for a filter that counts: none is merged with another one, so that each can be deleted later.
class EntrySource final : public Source {
  public:
    static Result<std::unique_ptr<Source>> of(Members members, const BuildOptions& options,
                                              std::uint32_t most_copies) {
        Listed listed{.fields = members.fields(), .entries = members.size()};
        std::uint64_t pieces = 0;
        std::vector<sieve_key> entries = entries_of(members, &pieces);
        listed.repeated = pieces - entries.size();
        if (options.probes) {
            listed.probes = *options.probes;
        } else {
            SIEVE_ASSIGN(listed.probes, choose_probes(entries, listed.fields, options.prefixes));
        }
        std::shared_ptr<const AddressSet> set;
        if (sieve_is_one_address(listed.fields))
            set = std::make_shared<const AddressSet>(
                address_set_of(all_ranges(std::move(members.keys), std::move(members.ranges))));
        return std::make_unique<EntrySource>(std::move(entries), std::move(set), listed, most_copies);
    }

    struct Listed {
        std::uint32_t fields = 0;
        std::uint64_t entries = 0;
        std::uint64_t repeated = 0; // prefixes that were listed before
        sieve_probes probes{};
    };

    // `set`: of one address.
    EntrySource(std::vector<sieve_key> entries, std::shared_ptr<const AddressSet> set, const Listed& listed,
                std::uint32_t most_copies)
        : entries_(std::move(entries)), set_(std::move(set)), listed_(listed), most_copies_(most_copies) {}

    Result<Material> hash(const BuildSecret& secret, bool) override {
        Material material;
        material.fields = listed_.fields;
        material.entries = listed_.entries;
        material.probes = listed_.probes;
        sieve_lookup lookup{};
        lookup.fields = static_cast<__u8>(listed_.fields);
        lookup.probes = static_cast<__u8>(material.most_probes());
        std::copy(secret.hash_key.begin(), secret.hash_key.end(), lookup.hash_key);
        const StoredKeys stored(lookup, listed_.probes);
        double total = 0;
        for (const sieve_key& entry : entries_) total += stored.count(entry);
        material.hashes = HugeArray<sieve_hash>(static_cast<std::uint64_t>(total));
        for (const sieve_key& entry : entries_)
            stored.for_each(
                entry, [&](const sieve_key& key) { material.hashes[material.keys++] = stored.hash(key); });
        sort_in_parallel(material.hashes.begin(), material.hashes.end(), hash_order);
        material.sum = sum_of({material.hashes.data(), material.hashes.size()});
        SIEVE_TRY(check_copies(material.hashes));
        material.hashed = material.keys + listed_.repeated;
        if (set_ != nullptr)
            describe_addresses(material, secret);
        else
            describe_keys(material, stored, secret);
        return material;
    }

  private:
    void describe_addresses(Material& material, const BuildSecret& secret) const {
        std::copy(std::begin(set_->covered), std::end(set_->covered), material.covered);
        material.witnesses = address_witnesses(*set_, witness_count(count_addresses(*set_, material.keys)),
                                               listed_.fields, secret.witnesses);
        material.is_member = asks_members(set_, listed_.fields);
    }

    // Of several fields: a key is a member if one of its probes asks for a stored key.
    void describe_keys(Material& material, const StoredKeys& stored, const BuildSecret& secret) const {
        const auto plan = std::make_shared<KeyPlan>();
        plan->fields = listed_.fields;
        plan->probes = listed_.probes;
        plan->stored.reserve(material.keys);
        for (const sieve_key& entry : entries_)
            stored.for_each(entry, [&](const sieve_key& key) { plan->stored.push_back(key); });
        sort_in_parallel(plan->stored.data(), plan->stored.data() + plan->stored.size(), key_order);
        plan->stored.erase(std::unique(plan->stored.begin(), plan->stored.end(), same_key),
                           plan->stored.end());
        const Members members = members_of_entries(entries_, listed_.fields);
        Witnesses witnesses(witness_count(plan->stored.size()));
        std::mt19937_64 random(secret.witnesses);
        witnesses.add_drawn([&] {
            return random_member(members.key_ranges[random() % members.key_ranges.size()], listed_.fields,
                                 random);
        });
        material.witnesses = witnesses.take();
        material.is_member = [plan](const sieve_key& key) { return is_member(*plan, key); };
    }

    [[nodiscard]] Status check_copies(const HugeArray<sieve_hash>& hashes) const {
        std::uint64_t most = 0;
        for (std::size_t at = 0, end = 0; at < hashes.size(); at = end) {
            while (end < hashes.size() && !hash_order(hashes[at], hashes[end])) end++;
            most = std::max<std::uint64_t>(most, end - at);
        }
        if (most <= most_copies_) return {};
        return bad_input(fmt::format(
            "{} prefixes one inside the other would be stored as the same key, and a counting filter counts "
            "to {}; allow more lengths with --max-probes (at most {}), or leave out prefixes that others "
            "cover",
            most, most_copies_, SIEVE_MAX_PROBES));
    }

    std::vector<sieve_key> entries_;
    std::shared_ptr<const AddressSet> set_; // of one address
    Listed listed_;
    std::uint32_t most_copies_;
};

// Keys of several fields, some of them ranges.
class KeyRangeSource final : public Source {
  public:
    static Result<std::unique_ptr<Source>> of(KeySet keys, std::vector<KeyRange> ranges,
                                              const PrefixLimits& limits) {
        SIEVE_ASSIGN(KeyPlan plan, plan_keys(keys, ranges, limits));
        return std::make_unique<KeyRangeSource>(std::move(plan), std::move(keys), std::move(ranges));
    }

    KeyRangeSource(KeyPlan plan, KeySet keys, std::vector<KeyRange> ranges)
        : plan_(std::make_shared<const KeyPlan>(std::move(plan))), keys_(std::move(keys)),
          ranges_(std::move(ranges)) {}

    Result<Material> hash(const BuildSecret& secret, bool) override {
        Material material;
        material.fields = keys_.fields();
        material.entries = keys_.size() + ranges_.size();
        material.probes = plan_->probes;
        HugeArray<sieve_hash> hashes(plan_->stored.size());
        for_each_index(plan_->stored.size(), [&](std::size_t i) {
            hashes[i] = sieve_hash_stored(&plan_->stored[i], secret.hash_key.data());
        });
        take_hashes(material, distinct_hashes(std::move(hashes)));
        material.hashed = plan_->expanded;
        Witnesses witnesses(witness_count(plan_->stored.size()));
        std::mt19937_64 random(secret.witnesses);
        witnesses.add_drawn([&] { return random_member(random); });
        material.witnesses = witnesses.take();
        material.is_member = [plan = plan_](const sieve_key& key) { return is_member(*plan, key); };
        return material;
    }

  private:
    sieve_key random_member(std::mt19937_64& random) const {
        const std::size_t index = random() % (keys_.size() + ranges_.size());
        if (index < keys_.size()) return keys_.at(index);
        return sieve::random_member(ranges_[index - keys_.size()], keys_.fields(), random);
    }

    std::shared_ptr<const KeyPlan> plan_;
    KeySet keys_;
    std::vector<KeyRange> ranges_;
};

bool names_lengths(const PrefixLimits& limits) {
    return std::any_of(limits.lengths.begin(), limits.lengths.end(),
                       [](const auto& lengths) { return !lengths.empty(); });
}

// `most_copies`: of the kind's builder, if its filters change while they are in force.
Result<std::unique_ptr<Source>> source_of(Members members, const BuildOptions& options,
                                          std::optional<std::uint32_t> most_copies) {
    const PrefixLimits& limits = options.prefixes;
    if (most_copies && (members.has_ranges() || names_lengths(limits)))
        return EntrySource::of(std::move(members), options, *most_copies);
    if (!members.ranges.empty())
        return PrefixSource::of(std::move(members.keys), std::move(members.ranges), limits);
    if (!members.key_ranges.empty())
        return KeyRangeSource::of(std::move(members.keys), std::move(members.key_ranges), limits);
    return std::make_unique<KeySource>(std::move(members.keys));
}

// How many lines the options ask for. If the options give a rate, each of a packet's probes gets a share of
// it.
Result<std::uint64_t> choose_lines(const Material& material, const KindBuilder& builder,
                                   const BuildOptions& options, std::uint64_t exceptions) {
    const std::uint64_t keys = material.keys;
    if (options.fpr)
        return builder.lines_for_fpr(keys,
                                     rate_of_one_probe(*options.fpr, std::max(1U, material.most_probes())));
    if (options.memory) {
        const std::uint64_t overhead = SIEVE_FIRST_LINE + material.witnesses.size() + exceptions;
        const std::uint64_t total = *options.memory / sizeof(sieve_line);
        const std::uint64_t least = builder.lines_for_bits(keys, least_bits_per_key);
        if (total < overhead + least)
            return invalid_request(
                fmt::format("{} bytes are too few for {}; the least is {} bytes (1 bit per key)",
                            *options.memory, counted(keys, "key"), (overhead + least) * sizeof(sieve_line)));
        return builder.usable_lines(total - overhead);
    }
    const double standard = options.kinds->of(options.kind.kind).facts().bits_per_key;
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
    file.excluded = report.excluded;
    file.key_sum[0] = material.sum.locate;
    file.key_sum[1] = material.sum.test;
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

// The share of random keys of the members' shapes that are members, by family: for a set of several fields
// there is no closed formula. The preflight compares it with fewer keys than are asked here.
void measure_cover(const Image& image, Material& material, std::uint64_t seed) {
    RandomKeys random(image.witnesses(), material.fields, seed);
    std::uint64_t asked[SIEVE_FAMILIES] = {0, 0};
    std::uint64_t members[SIEVE_FAMILIES] = {0, 0};
    for (std::uint64_t i = 0; i < cover_draws; i++) {
        const sieve_key key = random();
        const int family = sieve_key_family(&key, material.fields);
        asked[family]++;
        members[family] += material.is_member(key) ? 1 : 0;
    }
    for (int family = 0; family < SIEVE_FAMILIES; family++)
        if (asked[family] > 0 && material.probes.count[family] > 0)
            material.covered[family] =
                static_cast<double>(members[family]) / static_cast<double>(asked[family]);
}

// What all filters go through in the end: the checks, and the header that describes the finished image.
Result<BuiltSet> finish(Image image, const Material& material, const BuildReport& report,
                        const BuildOptions& options, const BuildSecret& secret) {
    fill_file(image.file(), material, report, options, secret);
    image.seal();
    SIEVE_TRY(image.check("built image"));
    return BuiltSet{std::move(image), report};
}

// Random keys that an exact filter is asked. No rate has to be measured; a few show that it is not broken.
constexpr std::uint64_t most_trials_of_exact = 1U << 16;

// What an exact filter is made of, and the filter.
struct ExactMaterial {
    Material material{};
    std::unique_ptr<ExactFilter> filter{};
};

// Merged ranges, for a kind that holds them.
Result<ExactMaterial> exact_ranges(const ExactKind& kind, Members list, const BuildSecret& secret) {
    ExactMaterial exact;
    Material& material = exact.material;
    material.fields = list.fields();
    material.entries = list.size();
    const auto members = std::make_shared<const AddressSet>(
        address_set_of(all_ranges(std::move(list.keys), std::move(list.ranges))));
    std::copy(std::begin(members->covered), std::end(members->covered), material.covered);
    material.witnesses =
        address_witnesses(*members, witness_count(members->ranges()), material.fields, secret.witnesses);
    material.is_member = asks_members(members, material.fields);
    SIEVE_ASSIGN(exact.filter, kind.work_out(*members));
    return exact;
}

// Single keys, for a kind that lists them.
Result<ExactMaterial> exact_keys_of(const ExactKind& kind, Members list, const Spare& spare,
                                    const BuildSecret& secret) {
    for (const AddressRange& range : list.ranges) {
        if (range.first != range.last)
            return invalid_request(fmt::format(
                "kind {} holds single addresses, and the list has prefixes or ranges; kind {} holds "
                "both",
                kind.facts().name, kind_name(SIEVE_KIND_RANGES)));
        list.keys.add(key_of(range.first, list.fields()));
    }
    if (!list.key_ranges.empty())
        return invalid_request(fmt::format("kind {} holds single keys, and the list has prefixes, ranges or "
                                           "open fields; a filter holds them",
                                           kind.facts().name));
    ExactMaterial exact;
    Material& material = exact.material;
    material.fields = list.fields();
    material.entries = material.hashed = list.keys.size();
    SIEVE_ASSIGN(exact.filter, kind.work_out(list.keys, spare, secret.hash_key));
    material.sum = exact.filter->sum();
    WitnessDraw witnesses(secret);
    witnesses.add(list.keys);
    material.witnesses = witnesses.take(exact.filter->keys());
    return exact;
}

// No exception is a member, and an exact filter matches members only. So its image has nothing to promise,
// and carries no exceptions, however many there are.
Result<BuiltSet> build_exact(const ExactKind& kind, Members list, const BuildOptions& options,
                             const Exceptions& exceptions) {
    SIEVE_ASSIGN(const BuildSecret secret, draw_build_secret(options.seed));
    SIEVE_ASSIGN(const ExactMaterial exact, kind.is_of_keys()
                                                ? exact_keys_of(kind, std::move(list), options.spare, secret)
                                                : exact_ranges(kind, std::move(list), secret));
    const auto& [material, filter] = exact;
    BuildReport report;
    report.keys = filter->keys();
    report.entries = material.entries;
    if (kind.is_of_keys()) report.duplicates = material.hashed - report.keys;
    report.exceptions = exceptions.lines.size();
    report.bits_per_key = bits_per_key_of(report.keys, filter->lines());
    const std::uint64_t bytes =
        (SIEVE_FIRST_LINE + filter->lines() + material.witnesses.size()) * sizeof(sieve_line);
    if (options.memory && bytes > *options.memory)
        return invalid_request(fmt::format(
            "the list takes {} bytes in kind {}, which is exact and cannot be smaller; {} were allowed",
            bytes, kind.facts().name, *options.memory));
    SIEVE_ASSIGN(Image image,
                 Image::create(filter->lines(), static_cast<std::uint32_t>(material.witnesses.size()), 0,
                               *options.kinds));
    fill_lookup(image, material, secret);
    SIEVE_TRY(filter->describe(image.lookup()));
    if (const std::string fault = options.kinds->geometry_fault(image.lookup()); !fault.empty())
        return invalid_request(fault);
    filter->fill(image.filter());
    image.file().keys = report.keys;
    // A filter that lists its keys is compared with the list as a whole (Image::check).
    if (!kind.is_of_keys()) {
        const Measurement measured = measure_fpr(image, std::min(options.trials, most_trials_of_exact),
                                                 secret.measurement, material.is_member);
        report.measured_hits = measured.hits;
        report.measured_trials = measured.trials;
        report.measured_fpr = measured.rate();
        SIEVE_TRY(check_promise(image, report));
    }
    return finish(std::move(image), material, report, options, secret);
}

// A filter that holds all keys, and was not measured yet.
struct Filled {
    Image image;
    BuildReport report;
    double rate = 0; // predicted, of one probe
};

Result<Filled> make_image(const Material& material, const KindBuilder& builder, const BuildOptions& options,
                          const BuildSecret& secret, const Exceptions& exceptions) {
    BuildReport report;
    report.keys = material.keys;
    report.duplicates = material.hashed - report.keys;
    report.entries = material.entries;
    report.probes = material.probes;
    report.exceptions = exceptions.lines.size();
    SIEVE_ASSIGN(const std::uint64_t lines, choose_lines(material, builder, options, report.exceptions));
    if (lines > std::numeric_limits<std::uint32_t>::max() - SIEVE_FIRST_LINE - material.witnesses.size() -
                    report.exceptions)
        return invalid_request(fmt::format("{} lines of 64 bytes are more than a BPF map can hold", lines));
    report.bits_per_key = bits_per_key_of(report.keys, lines);

    SIEVE_ASSIGN(Image image, Image::create(lines, static_cast<std::uint32_t>(material.witnesses.size()),
                                            static_cast<std::uint32_t>(report.exceptions), *options.kinds));
    fill_lookup(image, material, secret);
    std::copy(exceptions.lines.begin(), exceptions.lines.end(), image.exceptions().begin());
    SIEVE_TRY(builder.describe(report.keys, lines, image.lookup()));
    const sieve_lookup& lookup = image.lookup();
    if (const std::string fault = options.kinds->geometry_fault(lookup); !fault.empty())
        return invalid_request(fault);
    const double rate = builder.predict_fpr(report.keys, lookup);
    report.predicted_fpr = rate_of_probes(rate, std::max(1U, material.most_probes()));
    return Filled{std::move(image), report, rate};
}

// Tells members from non-members. The material and the image must outlive it.
std::function<bool(const sieve_key&)> asks_material(const Material& material, const Image& image) {
    if (material.is_member) return material.is_member;
    return [&material, &lookup = image.lookup()](const sieve_key& key) {
        const sieve_hash hash = sieve_hash_key(&key, lookup.hash_key, material.fields);
        return std::binary_search(material.hashes.begin(), material.hashes.end(), hash, hash_order);
    };
}

// Whether the filter is to be spared false positives of so many keys.
bool can_spare(const Filled& filled, const Material& material, std::size_t keys) {
    const std::uint64_t questions = filled.report.excluded + keys * std::max(1U, material.most_probes());
    return expected_tries(questions, filled.rate) <= most_expected_tries;
}

bool spares(const Image& image, const Material& material, const std::vector<sieve_key>& keys) {
    const auto is_member = asks_material(material, image);
    return std::none_of(keys.begin(), keys.end(),
                        [&](const sieve_key& key) { return image.contains(key) && !is_member(key); });
}

// Refuses exceptions that would take too many tries, and says what would do.
Status check_exceptions(const Filled& filled, const Material& material, const KindBuilder& builder) {
    const std::uint64_t questions = filled.report.excluded;
    const double tries = questions == 0 ? 1 : expected_tries(questions, filled.rate);
    if (tries <= most_expected_tries) return {};
    constexpr double few = 1.3;
    const double rate = rate_for_tries(questions, few);
    const auto lines = builder.lines_for_fpr(filled.report.keys, rate);
    return invalid_request(fmt::format(
        "the exceptions ask the filter {} questions, and at a false positive rate of {:.2g} for each {} "
        "filters "
        "would have to be built until none of them matches; {}, or put the exceptions into a set of their "
        "own in "
        "front, with action pass and verify",
        questions, filled.rate, tries < 1e6 ? fmt::format("{:.0f}", tries) : "more than a million",
        lines ? fmt::format("a rate of {:.1e}, which takes {:.0f} bits per key, would need one or two",
                            rate_of_probes(rate, std::max(1U, material.most_probes())),
                            std::ceil(bits_per_key_of(filled.report.keys, *lines)))
              : std::string("no size of this kind would do")));
}

Result<BuiltSet> measure(Filled filled, Material& material, const KindBuilder& builder,
                         const BuildOptions& options, const BuildSecret& secret) {
    auto& [image, report, rate] = filled;
    const Measurement measured =
        measure_fpr(image, options.trials, secret.measurement, asks_material(material, image));
    report.measured_hits = measured.hits;
    report.measured_trials = measured.trials;
    report.measured_fpr = measured.rate();
    SIEVE_TRY(check_promise(image, report));
    report.model_fpr = builder.model_fpr(report.keys, image.lookup());
    if (report.model_fpr)
        report.model_fpr =
            rate_of_probes(std::min(1.0, *report.model_fpr), std::max(1U, material.most_probes()));
    if (material.most_probes() > 0 && !sieve_is_one_address(material.fields))
        measure_cover(image, material, secret.measurement);

    return finish(std::move(image), material, report, options, secret);
}

// More filters in succession than this are not spoilt by chance.
constexpr std::uint32_t most_unlucky = 3;

// Builds filters until none of the exceptions matches, nor any of the keys to spare, and chance has spoilt no
// line.
Result<BuiltSet> build(Source& source, const KindBuilder& builder, const BuildOptions& options,
                       const Exceptions& exceptions, const Progress& progress) {
    const std::vector<sieve_key> none;
    const std::vector<sieve_key>& spared = options.seed ? none : exceptions.spared;
    std::uint32_t unlucky = 0;
    for (std::uint32_t tries = 1; tries <= most_tries; tries++) {
        // Another seed, but one that follows from the given one.
        const std::optional<std::uint64_t> seed =
            options.seed ? std::optional(*options.seed + (tries - 1) * 0x9e3779b97f4a7c15) : std::nullopt;
        SIEVE_ASSIGN(const BuildSecret secret, source.draw(seed));
        SIEVE_ASSIGN(Material material, source.hash(secret, exceptions.lines.empty() && spared.empty()));
        SIEVE_ASSIGN(Filled filled, make_image(material, builder, options, secret, exceptions));
        filled.report.tries = tries;
        SIEVE_ASSIGN(filled.report.excluded, count_questions(exceptions, filled.image));
        SIEVE_TRY(check_exceptions(filled, material, builder));
        Image& image = filled.image;
        SIEVE_ASSIGN(filled.report.rounds,
                     source.place(material, builder, image, secret.placement, progress));
        if (filled.report.excluded != 0 && !image.excludes(image.exceptions())) continue;
        image.file().keys = filled.report.keys; // expected_fpr depends on it
        filled.report.expected_fpr = expected_fpr(image);
        if (is_unlucky(filled.report) && source.can_hash_again() && ++unlucky < most_unlucky) continue;
        filled.report.spared = can_spare(filled, material, spared.size()) ? spared.size() : 0;
        if (filled.report.spared == 0 || tries == most_tries || spares(image, material, spared)) {
            Result<BuiltSet> built = measure(std::move(filled), material, builder, options, secret);
            SIEVE_TRY(source.check());
            return built;
        }
        SIEVE_TRY(source.check());
    }
    return bad_input(
        fmt::format("refused: each of {} filters matched one of the exceptions, which contradicts the "
                    "predicted rate; report it if it happens twice",
                    most_tries));
}

// Calls `work`. If it throws because memory is short, returns an error.
template <class Work>
Result<BuiltSet> within_memory(std::uint64_t entries, const Work& work) {
    try {
        return work();
    } catch (const std::exception& problem) {
        if (!is_out_of_memory(problem)) throw; // a bug; the program reports it
        return failure(
            ErrorKind::out_of_memory,
            fmt::format("building a filter of {} entries takes more memory than there is", entries));
    }
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
    if (options.memory_limit && *options.memory_limit < least_memory_limit)
        return invalid_request(fmt::format("a memory limit of {} bytes, expected at least {}",
                                           *options.memory_limit, least_memory_limit));
    if (options.prefixes.max_probes < 1 || options.prefixes.max_probes > SIEVE_MAX_PROBES)
        return invalid_request(
            fmt::format("{} probes, expected 1 to {}", options.prefixes.max_probes, SIEVE_MAX_PROBES));
    if (options.kind.kind == automatic_kind) {
        BuildOptions settled = settled_kind(options, false);
        settled.spare.hits = false; // the list decides
        return check_build_options(settled);
    }
    if (const KindFacts& facts = options.kinds->of(options.kind.kind).facts();
        options.spare.hits && !facts.has_marks)
        return invalid_request(fmt::format("hits: kind {} marks no entries; kind {}, a list of single "
                                           "addresses without a size or a rate, does",
                                           facts.name, kind_name(SIEVE_KIND_EXACT)));
    if (options.kinds->of(options.kind.kind).exact() != nullptr) {
        if (options.bits_per_key)
            return invalid_request(
                fmt::format("kind {} is exact: its size follows from the list, so it takes no bits per key",
                            options.kinds->of(options.kind.kind).facts().name));
        return options.kinds->check(options.kind);
    }
    SIEVE_TRY(options.kinds->builder(options.kind));
    return {};
}

Result<BuiltSet> build_set(Members members, const BuildOptions& wanted, const Progress& progress,
                           const Exceptions& exceptions) {
    BuildOptions options = wanted;
    options.kind.kind = chosen_kind(wanted, facts_of(members.keys, members.ranges, exceptions)).kind;
    SIEVE_TRY(check_build_options(options));
    if (members.empty()) return bad_input("no keys to build a set of");
    const KindFacts& facts = options.kinds->of(options.kind.kind).facts();
    const ExactKind* exact = options.kinds->of(options.kind.kind).exact();
    if (names_lengths(options.prefixes) && exact != nullptr)
        return invalid_request(
            fmt::format("lengths of prefixes are named for filters, and kind {} is none", facts.name));
    if (names_lengths(options.prefixes) && !facts.changes_live)
        return invalid_request(fmt::format(
            "lengths of prefixes are named for sets that change while they are in force, which kind {} does "
            "not",
            facts.name));
    if (!exceptions.lines.empty() && facts.changes_live && exact == nullptr)
        return invalid_request(fmt::format(
            "kind {} changes while it is in force, so it cannot promise that exceptions do not match",
            facts.name));
    if (exact != nullptr && !exact->is_of_keys() && !sieve_is_one_address(members.fields()))
        return invalid_request(
            fmt::format("kind {} holds addresses only: a key of it is src or dst", facts.name));
    const ThreadLimit threads(options.threads);
    const std::uint64_t entries = members.size();
    return within_memory(entries, [&]() -> Result<BuiltSet> {
        if (exact != nullptr) return build_exact(*exact, std::move(members), options, exceptions);
        SIEVE_ASSIGN(const std::unique_ptr<KindBuilder> builder, options.kinds->builder(options.kind));
        SIEVE_ASSIGN(const std::unique_ptr<Source> source,
                     source_of(std::move(members), options,
                               facts.changes_live ? std::optional(builder->most_copies()) : std::nullopt));
        return build(*source, *builder, options, exceptions, progress);
    });
}

Result<BuiltSet> build_set(SpilledKeys keys, const BuildOptions& wanted, const Progress& progress,
                           const Exceptions& exceptions) {
    BuildOptions options = wanted;
    options.kind.kind = chosen_kind(wanted, {.fields = keys.fields(), .spilled = true}).kind;
    SIEVE_TRY(check_build_options(options));
    const std::uint64_t entries = keys.entries();
    if (entries == 0) return bad_input("no keys to build a set of");
    const ThreadLimit threads(options.threads);
    return within_memory(entries, [&]() -> Result<BuiltSet> {
        SIEVE_ASSIGN(const std::unique_ptr<KindBuilder> builder, options.kinds->builder(options.kind));
        SpilledSource source(std::move(keys), progress);
        return build(source, *builder, options, exceptions, progress);
    });
}

namespace {

// Random keys that a filter of another process is asked.
constexpr std::uint64_t trials_of_check = 1U << 16;

tl::unexpected<Error> differs(const std::string& what, const std::string& found,
                              const std::string& expected) {
    return bad_input(
        fmt::format("its filter is not that of the list: {} {}, expected {}", what, found, expected));
}

template <class Number>
Status check_same(const char* what, Number found, Number expected) {
    if (found == expected) return {};
    return differs(what, fmt::format("{}", found), fmt::format("{}", expected));
}

template <class Struct>
bool same_bytes(const Struct& a, const Struct& b) {
    return std::memcmp(&a, &b, sizeof(Struct)) == 0;
}

// An exact filter must list its members and nothing else: each range that it lists is within one of theirs,
// and all together are as many addresses.
Status check_listed(const ExactKind& kind, const Image& image, const AddressSet& members) {
    uint128 expected[SIEVE_FAMILIES] = {0, 0};
    uint128 found[SIEVE_FAMILIES] = {0, 0};
    for (int family = 0; family < SIEVE_FAMILIES; family++)
        for (const AddressRange& range : members.members[family])
            expected[family] += range.last - range.first + 1;
    bool foreign = false;
    std::size_t at[SIEVE_FAMILIES] = {0, 0}; // kinds often list in order
    const auto is_inside = [&](const AddressRange& range) {
        const int family = family_of(range);
        const std::vector<AddressRange>& all = members.members[family];
        std::size_t& here = at[family];
        const auto holds = [&](std::size_t i) {
            return i < all.size() && all[i].first <= range.first && range.last <= all[i].last;
        };
        if (holds(here)) return true;
        if (holds(here + 1)) return ++here, true;
        const auto after =
            std::upper_bound(all.begin(), all.end(), range.first,
                             [](uint128 value, const AddressRange& one) { return value < one.first; });
        here = after == all.begin() ? 0 : static_cast<std::size_t>(after - all.begin()) - 1;
        return holds(here);
    };
    const Status listed = kind.for_each_range(image.lookup(), image.filter(), [&](const AddressRange& range) {
        found[family_of(range)] += range.last - range.first + 1;
        foreign = foreign || !is_inside(range);
    });
    if (!listed)
        return bad_input(fmt::format("its filter does not say what it holds: {}", listed.error().message));
    if (foreign)
        return bad_input("its filter is not that of the list: it holds an address that is none of it");
    if (found[0] != expected[0] || found[1] != expected[1])
        return bad_input("its filter is not that of the list: it lacks an address of it");
    return {};
}

Status check_exception_lines(const Image& image, const Exceptions& exceptions) {
    SIEVE_TRY(check_same<std::uint64_t>("exceptions", image.file().exceptions, exceptions.lines.size()));
    for (std::size_t i = 0; i < exceptions.lines.size(); i++)
        if (!same_bytes(image.exceptions()[i], exceptions.lines[i]))
            return bad_input("its filter is not that of the list: it has other exceptions");
    return {};
}

// The same for keys of several fields.
Status check_listed(const ExactKind& kind, const Image& image, const Members& members) {
    if (!members.key_ranges.empty())
        return bad_input("its filter holds single keys, and the list has ranges");
    SIEVE_ASSIGN(const KeySet listed, kind.list(image.lookup(), image.filter()));
    const auto sorted = [](const KeySet& keys) {
        std::vector<sieve_key> all;
        all.reserve(keys.size());
        keys.for_each(0, keys.size(), [&](const sieve_key& key) { all.push_back(key); });
        std::sort(all.begin(), all.end(), key_order);
        all.erase(std::unique(all.begin(), all.end(), same_key), all.end());
        return all;
    };
    const std::vector<sieve_key> own = sorted(listed), expected = sorted(members.keys);
    SIEVE_TRY(check_same<std::uint64_t>("keys", own.size(), expected.size()));
    if (!std::equal(own.begin(), own.end(), expected.begin(), same_key))
        return bad_input("its filter is not that of the list: it has as many keys, but not the same");
    return {};
}

Status check_exact_built(const ExactKind& kind, const Image& image, Members members) {
    SIEVE_TRY(check_exception_lines(image, {}));
    SIEVE_TRY(check_same<std::uint64_t>("entries", image.file().entries, members.size()));
    if (!sieve_is_one_address(members.fields())) return check_listed(kind, image, members);
    const AddressSet set = address_set_of(all_ranges(std::move(members.keys), std::move(members.ranges)));
    return check_listed(kind, image, set);
}

// What the header says, beside what a builder says of this material.
Status check_header(const Image& image, const Image& own, const Material& material,
                    const Exceptions& exceptions) {
    const sieve_file& file = image.file();
    if (!same_bytes(image.lookup(), own.lookup()))
        return differs("geometry", image.kind().geometry(image.lookup()), own.kind().geometry(own.lookup()));
    if (!same_bytes(image.probes(), own.probes()))
        return bad_input("its filter is not that of the list: it has other probes");
    SIEVE_TRY(check_same<std::uint64_t>("keys", file.keys, material.keys));
    SIEVE_TRY(check_same<std::uint64_t>("entries", file.entries, material.entries));
    if (file.key_sum[0] != material.sum.locate || file.key_sum[1] != material.sum.test)
        return bad_input("its filter is not that of the list: it has as many keys, but not the same");
    if (sieve_is_one_address(material.fields))
        for (int family = 0; family < SIEVE_FAMILIES; family++)
            SIEVE_TRY(check_same("coverage", rate_from_bits(file.covered[family]), material.covered[family]));
    SIEVE_TRY(check_exception_lines(image, exceptions));
    // Image::check() has asked as many questions as the header states.
    SIEVE_ASSIGN(const std::uint64_t questions, count_questions(exceptions, image));
    return check_same<std::uint64_t>("questions of its exceptions", file.excluded, questions);
}

// The rate by its bits, as it was predicted, and by random keys.
Status check_rates(const Image& image, const Filled& own, const Material& material, std::uint64_t seed) {
    BuildReport report = own.report;
    report.expected_fpr = expected_fpr(image);
    SIEVE_TRY(check_same("expected rate", rate_from_bits(image.file().expected_fpr), report.expected_fpr));
    const Measurement measured =
        measure_fpr(image, own.image.witnesses(), trials_of_check, seed, asks_material(material, image));
    report.measured_hits = measured.hits;
    report.measured_trials = measured.trials;
    // The promise leaves small filters out, whose rates differ much from each other. A builder's never exceed
    // a few times the prediction and what a few unlucky lines make up.
    const double most = most_times_predicted *
                        (report.predicted_fpr + unlucky_share / static_cast<double>(image.filter().size()));
    if (report.expected_fpr > most)
        return differs("rate", fmt::format("{:.3g}", report.expected_fpr),
                       fmt::format("at most {:.3g}", most));
    return check_promise(image, report);
}

Status check_filter_built(Source& source, const KindBuilder& builder, const Image& image,
                          const BuildOptions& options, const Exceptions& exceptions) {
    SIEVE_ASSIGN(BuildSecret secret, draw_build_secret(std::nullopt));
    std::copy(std::begin(image.lookup().hash_key), std::end(image.lookup().hash_key),
              secret.hash_key.begin());
    SIEVE_ASSIGN(const Material material, source.hash(secret, true));
    // Nothing is placed, so its lines take no memory.
    SIEVE_ASSIGN(const Filled own, make_image(material, builder, options, secret, exceptions));
    SIEVE_TRY(check_header(image, own.image, material, exceptions));
    const FilterKind& kind = image.kind();
    const bool all = std::all_of(material.hashes.begin(), material.hashes.end(), [&](const sieve_hash& hash) {
        return kind.holds(image.lookup(), hash, image.filter().data());
    });
    if (!all) return bad_input("its filter is not that of the list: it misses a key");
    // The kernel is asked about these.
    const auto is_member = asks_material(material, image);
    for (const sieve_witness& witness : image.witnesses())
        if (!is_member(witness.key))
            return bad_input("its filter is not that of the list: a witness is none of its members");
    return check_rates(image, own, material, secret.measurement);
}

} // namespace

Status check_built(const Image& image, Members members, const BuildOptions& wanted,
                   const Exceptions& exceptions) {
    BuildOptions options = wanted;
    options.kind.kind = chosen_kind(wanted, facts_of(members.keys, members.ranges, exceptions)).kind;
    const sieve_lookup& lookup = image.lookup();
    if (lookup.kind != options.kind.kind)
        return differs("kind", image.kind().facts().name, options.kinds->of(options.kind.kind).facts().name);
    if (lookup.fields != members.fields()) return bad_input("its filter is one of other fields");
    const ThreadLimit threads(options.threads);
    if (const ExactKind* exact = image.kind().exact())
        return check_exact_built(*exact, image, std::move(members));
    SIEVE_ASSIGN(const std::unique_ptr<KindBuilder> builder, options.kinds->builder(options.kind));
    const bool counts = image.kind().facts().changes_live;
    SIEVE_ASSIGN(const std::unique_ptr<Source> source,
                 source_of(std::move(members), options,
                           counts ? std::optional(builder->most_copies()) : std::nullopt));
    return check_filter_built(*source, *builder, image, options, exceptions);
}

Result<BuiltSet> build_set(KeySet keys, std::vector<AddressRange> ranges, const BuildOptions& options,
                           const Progress& progress) {
    return build_set(Members(std::move(keys), std::move(ranges)), options, progress);
}

Result<BuiltSet> build_set(KeySet keys, const BuildOptions& options, const Progress& progress) {
    return build_set(Members(std::move(keys), {}), options, progress);
}

} // namespace sieve
