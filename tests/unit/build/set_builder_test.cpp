// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/set_builder.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "libsieve/analysis/binomial.hpp"
#include "libsieve/build/measure.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "model/image_model.hpp"
#include "unit/keys/members_of_texts.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

KeySet random_sources(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    KeySet keys(SIEVE_FIELD_SRC);
    for (std::size_t i = 0; i < count; i++) {
        sieve_key key{};
        key.word[0] = random();
        key.word[1] = random();
        keys.add(key);
    }
    return keys;
}

BuildOptions seeded(std::uint64_t seed) {
    BuildOptions options;
    options.seed = seed;
    return options;
}

model::Key model_key(const sieve_key& key) {
    model::Key out{};
    std::copy(std::begin(key.word), std::end(key.word), out.begin());
    return out;
}

std::span<const unsigned char> bytes_of(const Image& image) {
    return {reinterpret_cast<const unsigned char*>(image.lines().data()), image.bytes()};
}

// Every combination of choices, alpha and size, with sets from one key to thousands. Each member is present,
// and the independent model agrees on members and non-members.
TEST(SetBuilder, NeverMissesAMemberAndAgreesWithTheModel) {
    std::uint64_t seed = 1;
    for (const std::uint32_t choices : {1U, 2U, 3U})
        for (const double alpha : {0.0, 0.3, 1.0})
            for (const double bits : {2.0, 9.0, 16.0, 33.0})
                for (const std::size_t count : {1U, 2U, 77U, 3000U}) {
                    const KeySet keys = random_sources(count, ++seed);
                    BuildOptions options = seeded(seed);
                    options.bits_per_key = bits;
                    options.trials = 20'000;
                    options.kind.choices = choices;
                    options.kind.alpha = alpha;
                    options.kind.rounds = static_cast<std::uint32_t>(seed % 4);
                    const auto built = build_set(keys, options, {});
                    ASSERT_TRUE(built) << built.error().message;
                    const model::FilterImage model(bytes_of(built->image));
                    for (std::size_t i = 0; i < keys.size(); i++) {
                        ASSERT_TRUE(built->image.contains(keys.at(i)));
                        if (i < 100) {
                            ASSERT_TRUE(model.contains(model_key(keys.at(i))));
                        }
                    }
                    const KeySet non_members = random_sources(300, ~seed);
                    for (std::size_t i = 0; i < non_members.size(); i++)
                        ASSERT_EQ(built->image.contains(non_members.at(i)),
                                  model.contains(model_key(non_members.at(i))));
                }
}

// With a memory limit and without a kind, the kind is one that takes the options.
TEST(SetBuilder, ChoosesAKindWithShardsThatTakesTheOptions) {
    BuildOptions options;
    options.kind.kind = automatic_kind;
    options.memory_limit = 64 << 20;
    EXPECT_EQ(settled_kind(options, false).kind.kind, SIEVE_KIND_BLOCKED);
    options.kind.choices = 4;
    EXPECT_EQ(settled_kind(options, false).kind.kind, SIEVE_KIND_DLEFT64);
    options.kind.alpha = 0.5; // no kind takes both
    EXPECT_EQ(settled_kind(options, false).kind.kind, SIEVE_KIND_BLOCKED);
}

// Filters of several shards, which small sets have at many bits a key.
TEST(SetBuilder, AgreesWithTheModelInEveryShard) {
    for (const std::uint32_t choices : {1U, 2U, 3U})
        for (const double bits : {110.0, 250.0}) {
            const KeySet keys = random_sources(20'000, choices);
            BuildOptions options = seeded(choices);
            options.bits_per_key = bits;
            options.trials = 20'000;
            options.kind.choices = choices;
            options.kind.hashes = 1; // so that some non-members match
            options.kind.rounds = 2;
            const auto built = build_set(keys, options, {});
            ASSERT_TRUE(built) << built.error().message;
            ASSERT_EQ(built->image.lookup().shard_bits, bits < 200 ? 1 : 2);
            const model::FilterImage model(bytes_of(built->image));
            for (std::size_t i = 0; i < keys.size(); i++) {
                ASSERT_TRUE(built->image.contains(keys.at(i)));
                if (i % 10 == 0) {
                    ASSERT_TRUE(model.contains(model_key(keys.at(i))));
                }
            }
            std::size_t matched = 0;
            const KeySet non_members = random_sources(3'000, 99);
            for (std::size_t i = 0; i < non_members.size(); i++) {
                const bool matches = built->image.contains(non_members.at(i));
                matched += matches ? 1 : 0;
                ASSERT_EQ(matches, model.contains(model_key(non_members.at(i))));
            }
            EXPECT_GT(matched, 0U);
        }
}

// The rates that the design promises for two and three choices at these sizes; 2^16 keys, exact from the
// bits.
struct Promise {
    double bits_per_key;
    std::uint32_t choices;
    double fpr;
};
class PromisedRate : public testing::TestWithParam<Promise> {};

TEST_P(PromisedRate, IsKeptAndPredicted) {
    BuildOptions options = seeded(7);
    options.bits_per_key = GetParam().bits_per_key;
    options.kind.choices = GetParam().choices;
    const auto built = build_set(random_sources(1 << 16, 8), options, {});
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_LE(built->report.expected_fpr, GetParam().fpr);
    EXPECT_NEAR(built->report.predicted_fpr / built->report.expected_fpr, 1, 0.1);
    EXPECT_TRUE(analysis::fits_rate(built->report.measured_hits, built->report.measured_trials,
                                    built->report.expected_fpr));
    EXPECT_LT(built->report.expected_fpr, built->report.model_fpr.value_or(0));
}

INSTANTIATE_TEST_SUITE_P(Table, PromisedRate,
                         testing::Values(Promise{8, 2, 1.58e-2}, Promise{10, 2, 5.53e-3},
                                         Promise{12, 2, 2.00e-3}, Promise{16, 2, 2.70e-4},
                                         Promise{20, 2, 3.91e-5}, Promise{24, 2, 6.14e-6},
                                         Promise{32, 2, 1.79e-7}, Promise{8, 3, 1.47e-2},
                                         Promise{10, 3, 4.80e-3}, Promise{12, 3, 1.64e-3},
                                         Promise{16, 3, 2.14e-4}, Promise{20, 3, 3.01e-5},
                                         Promise{24, 3, 4.67e-6}, Promise{32, 3, 1.47e-7}));

// A range of IPv6 may hold the v4-mapped addresses, which it does not mean: no witness is one of them, since
// no filter of the list holds it.
TEST(SetBuilder, RangesAroundIPv4MeanNoneOfIt) {
    constexpr std::uint32_t flow_fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    const struct {
        std::uint32_t fields;
        sieve_kind kind;
        const char* entry;
        const char* member; // one of them
        const char* mapped; // none, though it is among their numbers
    } cases[] = {
        {SIEVE_FIELD_SRC, SIEVE_KIND_RANGES, "::fffe:ffff:fff0-::1:0:0:5", "::1:0:0:5", "192.0.2.1"},
        {SIEVE_FIELD_SRC, SIEVE_KIND_RANGES, "::fffc:0:0/94", "::fffe:0:1", "192.0.2.1"},
        {SIEVE_FIELD_SRC, SIEVE_KIND_BLOCKED, "::fffe:ffff:fff0-::1:0:0:5", "::fffe:ffff:fff0", "192.0.2.1"},
        {SIEVE_FIELD_SRC, SIEVE_KIND_BLOCKED, "::fffe:0:0/95", "::fffe:0:1", "192.0.2.1"},
        {SIEVE_FIELD_SRC, SIEVE_KIND_DDLCBF, "::fffe:ffff:fff0-::1:0:0:5", "::1:0:0:0", "192.0.2.1"},
        {SIEVE_FIELD_SRC, SIEVE_KIND_DDLCBF, "::fffc:0:0/94", "::fffc:0:0", "192.0.2.1"},
        {flow_fields, SIEVE_KIND_BLOCKED, "::fffe:0:0/95 443", "::fffe:0:1 443", "192.0.2.1 443"},
        {flow_fields, SIEVE_KIND_DDLCBF, "::fffe:ffff:fff0-::1:0:0:5 443", "::1:0:0:5 443", "192.0.2.1 443"},
    };
    for (const auto& one : cases)
        for (std::uint64_t seed = 1; seed <= 10; seed++) {
            SCOPED_TRACE(one.entry + (" of kind " + std::to_string(one.kind)));
            BuildOptions options = seeded(seed);
            options.kind.kind = one.kind;
            options.trials = 1'000;
            const auto built = build_set(test::members_of_texts({one.entry}, one.fields), options, {});
            EXPECT_TRUE(built) << built.error().message;
            if (!built) break;
            EXPECT_TRUE(built->image.contains(parse_key(one.member, one.fields).value()));
            EXPECT_FALSE(built->image.contains(parse_key(one.mapped, one.fields).value()));
            for (const sieve_witness& witness : built->image.witnesses())
                EXPECT_TRUE(built->image.contains(witness.key));
        }
}

// Real sets and real non-members consist of structured keys. Here members and non-members come from the same
// run of addresses, the same /16, or the same flows but for one port bit. The rate must be that of random
// keys, to 4 sigma.
struct Structure {
    const char* name;
    std::uint32_t fields;
    std::function<sieve_key(std::uint64_t)> member;     // of 0 .. 65535
    std::function<sieve_key(std::uint64_t)> non_member; // likewise, disjoint from the members
    std::uint64_t non_members;
};

sieve_key source(std::uint32_t address) {
    sieve_key key{};
    key.word[1] = sieve_v4_mapped(address);
    return key;
}

sieve_key flow(std::uint32_t client, std::uint16_t sport, std::uint16_t dport) {
    sieve_key key = source(0x0a000000U + client);
    key.word[3] = sieve_v4_mapped(0xc0a80001U);
    key.word[4] = sieve_transport_word(sport, dport, 6);
    return key;
}

sieve_key source6(std::uint64_t host) {
    sieve_key key{};
    key.word[0] = 0x20010db800000000ULL;
    key.word[1] = host;
    return key;
}

class StructuredKeys : public testing::TestWithParam<Structure> {};

TEST_P(StructuredKeys, AreNoWorseThanRandomOnes) {
    const Structure& structure = GetParam();
    KeySet keys(structure.fields);
    for (std::uint64_t i = 0; i < 65536; i++) keys.add(structure.member(i));
    BuildOptions options = seeded(11);
    options.bits_per_key = 10; // a high rate, so that a deviation of a few per cent shows
    const auto built = build_set(keys, options, {});
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->report.duplicates, 0U);
    EXPECT_NEAR(built->report.expected_fpr / built->report.predicted_fpr, 1, 0.04);
    std::uint64_t hits = 0;
    for (std::uint64_t i = 0; i < structure.non_members; i++)
        hits += built->image.contains(structure.non_member(i)) ? 1 : 0;
    const double mean = built->report.expected_fpr * static_cast<double>(structure.non_members);
    EXPECT_NEAR(static_cast<double>(hits), mean, 4 * std::sqrt(mean)) << structure.name;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, StructuredKeys,
    testing::Values(
        Structure{"a run of consecutive addresses", SIEVE_FIELD_SRC,
                  [](std::uint64_t i) { return source(0x0b000000U + static_cast<std::uint32_t>(i)); },
                  [](std::uint64_t i) { return source(0x0b010000U + static_cast<std::uint32_t>(i)); },
                  1'000'000},
        Structure{"every second address of a /15", SIEVE_FIELD_SRC,
                  [](std::uint64_t i) { return source(0xc6120000U + 2 * static_cast<std::uint32_t>(i)); },
                  [](std::uint64_t i) { return source(0xc6120001U + 2 * static_cast<std::uint32_t>(i)); },
                  65536},
        Structure{"one /16 against the rest of its /8", SIEVE_FIELD_SRC,
                  [](std::uint64_t i) { return source(0x0a010000U + static_cast<std::uint32_t>(i)); },
                  [](std::uint64_t i) { return source(0x0a020000U + static_cast<std::uint32_t>(i)); },
                  1'000'000},
        Structure{"flows that differ in one port bit", SIEVE_FIELD_ALL,
                  [](std::uint64_t i) {
                      return flow(static_cast<std::uint32_t>(i / 256),
                                  static_cast<std::uint16_t>(i % 256 * 2), 443);
                  },
                  [](std::uint64_t i) {
                      return flow(static_cast<std::uint32_t>(i / 256),
                                  static_cast<std::uint16_t>(i % 256 * 2 + 1), 443);
                  },
                  65536},
        Structure{"hosts of one IPv6 network", SIEVE_FIELD_SRC, [](std::uint64_t i) { return source6(i); },
                  [](std::uint64_t i) { return source6(65536 + i); }, 1'000'000},
        Structure{"low bytes of IPv6 interface identifiers and networks", SIEVE_FIELD_SRC,
                  [](std::uint64_t i) {
                      sieve_key k = source6(i % 256 + 1);
                      k.word[0] += i / 256;
                      return k;
                  },
                  [](std::uint64_t i) {
                      sieve_key k = source6(i % 256 + 257);
                      k.word[0] += i / 256;
                      return k;
                  },
                  65536}),
    [](const auto& info) { return "Case" + std::to_string(info.index); });

// Every kind behind the same interface: no member is missed, the prediction is right, and so is the
// measurement (otherwise build_set refuses).
class EveryKind : public testing::TestWithParam<sieve_kind> {};

TEST_P(EveryKind, HoldAllKeysAndKeepTheirPrediction) {
    std::uint64_t seed = 100;
    for (const double bits : {16.0, 24.0})
        for (const std::size_t count : {1U, 500U, 20'000U}) {
            const KeySet keys = random_sources(count, ++seed);
            BuildOptions options = seeded(seed);
            options.bits_per_key = bits;
            options.trials = 200'000;
            options.kind.kind = GetParam();
            const auto built = build_set(keys, options, {});
            ASSERT_TRUE(built) << built.error().message;
            for (std::size_t i = 0; i < keys.size(); i++) ASSERT_TRUE(built->image.contains(keys.at(i)));
            if (count > 10'000) {
                EXPECT_NEAR(built->report.expected_fpr / built->report.predicted_fpr, 1, 0.15);
            }
            EXPECT_NEAR(built->report.bits_per_key * static_cast<double>(count),
                        bits * static_cast<double>(count), 4 * 512);
        }
    BuildOptions options = seeded(200);
    options.kind.kind = GetParam();
    options.kind.choices = 9;
    const auto refused = build_set(random_sources(10, 1), options, {});
    ASSERT_FALSE(refused);
    options.kind.choices.reset();
    const KindFacts& facts = kind_of(GetParam()).facts();
    options.kind.alpha = 0.5;
    EXPECT_EQ(build_set(random_sources(10, 1), options, {}).has_value(), facts.takes_alpha);
    options.kind.alpha.reset();
    options.kind.hashes = 8;
    EXPECT_EQ(build_set(random_sources(10, 1), options, {}).has_value(), facts.takes_hashes);
}

// Keys reach a kind's builder sorted by their position in the filter. Keys that are placed for good must not
// suffer from it.
TEST_P(EveryKind, KeepTheirPredictionWithoutRebalancing) {
    BuildOptions options = seeded(300);
    options.kind.kind = GetParam();
    options.kind.effort = Effort::fast;
    options.bits_per_key = kind_of(GetParam()).facts().bits_per_key;
    const auto built = build_set(random_sources(50'000, 301), options, {});
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->report.rounds, 0U);
    EXPECT_NEAR(built->report.expected_fpr / built->report.predicted_fpr, 1, 0.1);
}

std::vector<sieve_kind> all_kinds() {
    std::vector<sieve_kind> kinds;
    for (const FilterKind* kind : hashing_kinds()) kinds.push_back(kind->facts().number);
    return kinds;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryKind, testing::ValuesIn(all_kinds()),
                         [](const auto& info) { return std::string(kind_name(info.param)); });

TEST(SetBuilder, CountsDuplicates) {
    KeySet keys = random_sources(1000, 12);
    keys.append(random_sources(500, 12));
    const auto built = build_set(std::move(keys), seeded(1), {});
    ASSERT_TRUE(built);
    EXPECT_EQ(built->report.keys, 1000U);
    EXPECT_EQ(built->report.duplicates, 500U);
}

// The sum of the members' hashes tells whether a list is the filter's: neither order nor repetitions matter.
TEST_P(EveryKind, RecordTheSumOfTheirKeys) {
    const KeySet keys = random_sources(700, 21);
    KeySet repeated = random_sources(0, 0);
    for (std::size_t i = keys.size(); i > 0; i--) {
        repeated.add(keys.at(i - 1));
        if (i % 3 == 0) repeated.add(keys.at(i / 3));
    }
    BuildOptions options = seeded(22);
    options.kind.kind = GetParam();
    options.trials = 1000;
    const auto built = build_set(keys, options, {});
    ASSERT_TRUE(built) << built.error().message;
    const sieve_file& file = built->image.file();
    std::uint64_t locate = 0, test = 0;
    for (std::size_t i = 0; i < keys.size(); i++) {
        const sieve_key key = keys.at(i);
        const sieve_hash hash =
            sieve_hash_key(&key, built->image.lookup().hash_key, built->image.lookup().fields);
        locate += hash.locate;
        test += hash.test;
    }
    EXPECT_EQ(file.key_sum[0], locate);
    EXPECT_EQ(file.key_sum[1], test);
    const auto again = build_set(std::move(repeated), options, {});
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->image.file().key_sum[0], locate);
    EXPECT_EQ(again->image.file().key_sum[1], test);
}

TEST(SetBuilder, IsTheSameAgainWithASeedWhateverTheThreads) {
    BuildOptions options = seeded(99);
    options.threads = 1;
    auto one = build_set(random_sources(20'000, 13), options, {});
    options.threads = 4;
    auto four = build_set(random_sources(20'000, 13), options, {});
    ASSERT_TRUE(one && four);
    ASSERT_EQ(one->image.bytes(), four->image.bytes());
    EXPECT_EQ(std::memcmp(one->image.lines().data(), four->image.lines().data(), one->image.bytes()), 0);
}

TEST(SetBuilder, DrawsAFreshSecretWithoutASeed) {
    auto one = build_set(random_sources(100, 14), {}, {});
    auto two = build_set(random_sources(100, 14), {}, {});
    ASSERT_TRUE(one && two);
    EXPECT_NE(one->image.lookup().hash_key[0], two->image.lookup().hash_key[0]);
    EXPECT_NE(one->image.file().identity[0], two->image.file().identity[0]);
}

TEST(SetBuilder, KeepsWithinAMemoryBudgetAndARate) {
    BuildOptions options = seeded(15);
    options.memory = 64 << 10;
    const auto memory = build_set(random_sources(20'000, 16), options, {});
    ASSERT_TRUE(memory);
    EXPECT_LE(memory->image.bytes(), 64U << 10);
    EXPECT_GT(memory->image.bytes(), (64U << 10) - SIEVE_LINE_BYTES);
    options = seeded(15);
    options.fpr = 1e-3;
    const auto rate = build_set(random_sources(20'000, 16), options, {});
    ASSERT_TRUE(rate);
    EXPECT_LE(rate->report.predicted_fpr, 1e-3);
    EXPECT_GT(rate->report.predicted_fpr, 0.9e-3) << "a filter larger than needed";
}

TEST(SetBuilder, RefusesWhatCannotBe) {
    const auto refused = [](const std::function<void(BuildOptions&)>& change, ErrorKind kind) {
        BuildOptions options = seeded(1);
        change(options);
        const auto built = build_set(random_sources(100, 17), options, {});
        ASSERT_FALSE(built);
        EXPECT_EQ(built.error().kind, kind) << built.error().message;
    };
    refused([](auto& o) { o.bits_per_key = 0.5; }, ErrorKind::invalid_request);
    refused([](auto& o) { o.bits_per_key = 1e9; }, ErrorKind::invalid_request);
    refused([](auto& o) { o.bits_per_key = std::nan(""); }, ErrorKind::invalid_request);
    refused([](auto& o) { o.fpr = 0; }, ErrorKind::invalid_request);
    refused([](auto& o) { o.fpr = 1.5; }, ErrorKind::invalid_request);
    refused([](auto& o) { o.fpr = 1e-60; }, ErrorKind::invalid_request);
    refused([](auto& o) { o.memory = 100; }, ErrorKind::invalid_request);
    refused([](auto& o) { o.kind.alpha = -0.1; }, ErrorKind::invalid_request);
    refused([](auto& o) { o.kind.choices = 4; }, ErrorKind::invalid_request);
    refused([](auto& o) { o.kind.hashes = 40; }, ErrorKind::invalid_request);
    refused([](auto& o) { o.bits_per_key = 16, o.fpr = 1e-3; }, ErrorKind::invalid_request);
    const auto empty = build_set(KeySet(SIEVE_FIELD_SRC), {}, {});
    ASSERT_FALSE(empty);
    EXPECT_EQ(empty.error().kind, ErrorKind::bad_input);
    BuildOptions tiny = seeded(1);
    tiny.memory = 100;
    for (const std::size_t keys : {1, 2})
        expect_error(build_set(random_sources(keys, 17), tiny, {}), ErrorKind::invalid_request);
}

} // namespace
} // namespace sieve
