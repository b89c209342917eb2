// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A filter that is worse than promised is refused. An honest filter is not. The tests build real filters, and
// then make the promise or the bits wrong.
#include "libsieve/build/promise.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "libsieve/analysis/binomial.hpp"
#include "libsieve/build/measure.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

Result<BuiltSet> build(const KindOptions& kind, std::uint64_t count, double bits, std::uint64_t seed = 7) {
    BuildOptions options;
    options.kind = kind;
    options.bits_per_key = bits;
    options.seed = seed;
    options.trials = 1'000;
    KeySet keys(SIEVE_FIELD_SRC);
    std::mt19937_64 random(count);
    for (std::uint64_t i = 0; i < count; i++) {
        sieve_key key{};
        key.word[0] = 0x2001000000000000U + (random() >> 16);
        key.word[1] = random();
        keys.add(key);
    }
    return build_set(std::move(keys), options, {});
}

// At 60,000 keys and up to 24 bits a key, chance moves no kind's rate by more than 4%. Six times that is less
// than the distance between 1.5 and 2.
TEST(Promise, EveryKindIsRefusedAtTwiceThePrediction) {
    for (const FilterKind* kind : hashing_kinds())
        for (const double bits : {16.0, 24.0}) {
            SCOPED_TRACE(fmt::format("{} of {} bits", kind->facts().name, bits));
            const auto built = build({.kind = kind->facts().number, .effort = Effort::fast}, 60'000, bits);
            ASSERT_TRUE(built) << built.error().message;
            BuildReport report = built->report;
            EXPECT_TRUE(check_promise(built->image, report));
            report.predicted_fpr = report.expected_fpr / 2;
            expect_error(check_promise(built->image, report), ErrorKind::bad_input);
        }
}

// The scatter that one filter of the kind xorsat shows in its parts is about that of the rates of many
// filters, although its lines share their keys with their neighbours.
TEST(Promise, TheScatterIsThatOfManyFilters) {
    constexpr int builds = 12;
    double sum = 0;
    double squares = 0;
    double scatter = 0;
    for (int seed = 0; seed < builds; seed++) {
        const auto built = build({.kind = SIEVE_KIND_XORSAT, .effort = Effort::fast}, 20'000, 24, seed);
        ASSERT_TRUE(built) << built.error().message;
        const double rate = built->report.expected_fpr;
        sum += rate / builds;
        squares += rate * rate / builds;
        scatter += scatter_of_expected_fpr(built->image) / builds;
    }
    const double deviation = std::sqrt((squares - sum * sum) * builds / (builds - 1));
    // The deviation of 12 rates is within a factor of 1.9 of the true one at four sigma.
    EXPECT_GT(scatter, deviation / 1.9);
    EXPECT_LT(scatter, deviation * 1.9 * 1.5);
}

// A builder that never uses the second choice.
TEST(Promise, OneChoiceIsNotWhatTwoPromise) {
    const auto promised = build({.kind = SIEVE_KIND_BLOCKED, .choices = 2U}, 60'000, 16);
    const auto broken = build({.kind = SIEVE_KIND_BLOCKED, .choices = 1U}, 60'000, 16);
    ASSERT_TRUE(promised && broken);
    BuildReport report = broken->report;
    report.predicted_fpr = promised->report.predicted_fpr;
    EXPECT_FALSE(check_promise(broken->image, report));
}

// A builder that crowds all keys into some of the lines: the filter's parts then differ so much that they
// explain any rate.
TEST(Promise, AScatterAsLargeAsTheRateIsNoExcuse) {
    auto built = build({.kind = SIEVE_KIND_BLOCKED}, 60'000, 16);
    ASSERT_TRUE(built) << built.error().message;
    const std::span<sieve_line> lines = built->image.filter();
    for (sieve_line& line : lines.first(lines.size() / 16)) std::fill_n(line.word, 8, ~__u64{0});
    BuildReport report = built->report;
    report.expected_fpr = expected_fpr(built->image);
    report.measured_hits = report.measured_trials = 0;
    ASSERT_GT(6 * scatter_of_expected_fpr(built->image), report.expected_fpr);
    expect_error(check_promise(built->image, report), ErrorKind::bad_input);
}

// With many bits a key, one line that chance has filled makes most of the rate.
TEST(Promise, ALineThatChanceHasFilledIsNoFault) {
    auto built = build({.kind = SIEVE_KIND_BLOCKED, .choices = 1U}, 5'000, 48);
    ASSERT_TRUE(built) << built.error().message;
    BuildReport report = built->report;
    report.measured_hits = report.measured_trials = 0;
    sieve_line& line = built->image.filter().front();
    for (int bit = 0; bit < 512 && report.expected_fpr < 20 * report.predicted_fpr; bit++) {
        line.word[bit % 8] |= __u64{1} << bit / 8;
        report.expected_fpr = expected_fpr(built->image);
    }
    ASSERT_GE(report.expected_fpr, 20 * report.predicted_fpr);
    EXPECT_TRUE(check_promise(built->image, report)) << report.expected_fpr;
}

// Of a thousand counting filters of this shape, one gets more than eight times the predicted rate: a bucket
// is overfull. With this seed, the first one does.
TEST(Promise, AFilterOfBadLuckIsBuiltAgain) {
    constexpr std::uint64_t bad = 32;
    const auto built = build({.kind = SIEVE_KIND_DDLCBF}, 4'500, 56, bad);
    const auto other = build({.kind = SIEVE_KIND_DDLCBF}, 4'500, 56, bad + 1);
    ASSERT_TRUE(built && other);
    EXPECT_EQ(built->report.tries, 2U);
    EXPECT_LT(built->report.expected_fpr, 2 * built->report.predicted_fpr);
    EXPECT_EQ(other->report.tries, 1U);
}

TEST(Promise, AMeasurementThatContradictsTheBitsIsRefused) {
    const auto built = build({.kind = SIEVE_KIND_BLOCKED}, 10'000, 16);
    ASSERT_TRUE(built) << built.error().message;
    BuildReport report = built->report;
    report.measured_trials = 1'000;
    for (const std::uint64_t hits : {0, 100}) {
        report.measured_hits = hits;
        EXPECT_EQ(check_promise(built->image, report).has_value(), hits == 0) << hits;
    }
}

// A probe for `* 25` asks 65,536 questions. A million random keys ask each of them fifteen times, so that
// three false matches are some fifty. Counted by themselves, the matches of this build contradict its rate.
TEST(Promise, KeysThatAskTheSameQuestionMatchTogether) {
    const test::Files files;
    const std::string list = files.feed("flows", {"198.51.100.0/24 443", "192.0.2.1 22", "* 25"});
    auto feed = read_feed({list}, SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT, {.ranges = true, .key_ranges = true});
    ASSERT_TRUE(feed) << feed.error().message;
    BuildOptions options;
    options.kind = {.kind = SIEVE_KIND_XORSAT};
    options.bits_per_key = 16;
    options.seed = 84;
    const auto built = build_set(members_of(std::move(*feed)), options, {});
    ASSERT_TRUE(built) << built.error().message;
    BuildReport report = built->report;
    EXPECT_FALSE(analysis::fits_rate(report.measured_hits, report.measured_trials,
                                     expected_fpr_of_witnesses(built->image, report.expected_fpr)))
        << report.measured_hits << " of " << report.measured_trials;
    report.measured_hits = 600;
    EXPECT_FALSE(check_promise(built->image, report)) << "no chance makes forty of one";
}

// A key of one port asks 65,536 questions.
TEST(Promise, KeysOfPortsAskTheSameQuestion) {
    KeySet ports(SIEVE_FIELD_DPORT);
    std::mt19937_64 random(21);
    for (int i = 0; i < 519; i++) {
        sieve_key key{};
        key.word[4] = random() & SIEVE_DPORT_MASK;
        ports.add(key);
    }
    int far_off = 0;
    for (const sieve_kind kind : {SIEVE_KIND_BLOOM, SIEVE_KIND_DLEFT128})
        for (std::uint64_t seed = 1; seed <= 16; seed++) {
            BuildOptions options;
            options.kind = {.kind = kind, .effort = Effort::fast};
            options.seed = seed;
            const auto built = build_set(ports, options, {});
            ASSERT_TRUE(built) << seed << ": " << built.error().message;
            const BuildReport& report = built->report;
            far_off += analysis::fits_rate(report.measured_hits, report.measured_trials, report.expected_fpr)
                           ? 0
                           : 1;
        }
    EXPECT_GT(far_off, 0) << "counted by themselves, the matches of some build contradict its rate";
}

// In a small set, a few lines decide the rate. There, bad luck looks the same as a bad builder.
TEST(Promise, SmallSetsAreNotCompared) {
    const auto built = build({.kind = SIEVE_KIND_BLOCKED}, 4'000, 16);
    ASSERT_TRUE(built) << built.error().message;
    BuildReport report = built->report;
    report.predicted_fpr /= 100;
    EXPECT_TRUE(check_promise(built->image, report));
}

} // namespace
} // namespace sieve
