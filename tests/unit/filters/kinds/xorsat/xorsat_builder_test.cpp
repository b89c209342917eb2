// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/xorsat/xorsat_builder.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_exports.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_kind.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_plan.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_rate.hpp"
#include "libsieve/filters/placement/sample_hashes.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "model/image_model.hpp"

namespace sieve {
namespace {

constexpr std::uint32_t sweeps = 8;

struct Built {
    std::vector<sieve_hash> keys;
    sieve_lookup lookup{};
    std::vector<sieve_line> lines;

    Built(std::size_t count, std::uint32_t buckets, std::uint32_t wanted_sweeps, std::uint64_t seed = 1) {
        std::mt19937_64 random(seed);
        keys = sample_hashes(count, random);
        lookup.kind = SIEVE_KIND_XORSAT;
        lookup.choices = wanted_sweeps > 0 ? 2 : 1;
        lookup.buckets = buckets;
        lines.resize(buckets);
        fill_xorsat(keys, lookup, lines, wanted_sweeps, {});
    }
    [[nodiscard]] bool holds(const sieve_hash& hash) const {
        return xorsat_kind.holds(lookup, hash, lines.data());
    }
    [[nodiscard]] double rate() const { return expected_xorsat_rate(lookup, lines); }
};

// Sizes around the reach of exports, the lines that a thread solves, and the blocks that choose exports.
TEST(XorsatBuilder, MissesNoKeyInAnyGeometry) {
    std::uint64_t seed = 0;
    for (const std::uint32_t buckets : {1U, 2U, 3U, 63U, 64U, 65U, 256U, 257U, 1023U, 2048U, 2100U, 3100U})
        for (const double load : {0.5, 4.0, 33.0}) {
            const auto count = static_cast<std::size_t>(std::ceil(load * buckets));
            const Built built(count, buckets, sweeps, ++seed);
            for (const sieve_hash& key : built.keys) ASSERT_TRUE(built.holds(key)) << buckets << " lines";
        }
    const Built full(60'000, 100, sweeps); // 600 keys a line
    for (const sieve_hash& key : full.keys) ASSERT_TRUE(full.holds(key));
    EXPECT_GT(full.rate(), 0.5);
    const Built empty(0, 5, sweeps);
    EXPECT_LT(empty.rate(), 3e-10);
}

// The rates that the kind promises, exact from the bits, and their predictions.
TEST(XorsatBuilder, KeepsItsRates) {
    struct Promise {
        double bits_per_key;
        double fpr;
    };
    for (const Promise& promise : {Promise{8, 5.2e-3}, Promise{12, 3.6e-4}, Promise{16, 2.5e-5},
                                   Promise{20, 1.8e-6}, Promise{24, 1.4e-7}}) {
        SCOPED_TRACE(promise.bits_per_key);
        const std::uint32_t lines = 3200;
        const auto keys = static_cast<std::size_t>(lines * SIEVE_LINE_BITS / promise.bits_per_key);
        const Built built(keys, lines, sweeps);
        EXPECT_LE(built.rate(), promise.fpr * 1.02);
        EXPECT_NEAR(built.rate() / predict_xorsat_fpr(keys, lines, sweeps), 1, 0.06);
        const Built alone(keys, lines, 0);
        EXPECT_NEAR(alone.rate() / predict_xorsat_fpr(keys, lines, 0), 1, 0.15);
        EXPECT_EQ(xorsat_exported(alone.lines), 0);
    }
}

// Half as many more lookups took a second line when each line exported the first eighths that gained
// anything: 11, 15 and 20% at 12, 16 and 20 bits a key.
TEST(XorsatBuilder, ExportsLittleForItsRate) {
    for (const double bits_per_key : {8.0, 12.0, 16.0, 20.0, 24.0}) {
        SCOPED_TRACE(bits_per_key);
        const std::uint32_t lines = 3200;
        const Built built(static_cast<std::size_t>(lines * SIEVE_LINE_BITS / bits_per_key), lines, sweeps);
        const double exported = xorsat_exported(built.lines);
        EXPECT_NEAR(1 + exported, xorsat_kind.lines_touched(built.lookup, built.rate()).non_member, 0.017);
        EXPECT_GT(exported, 0.03);
    }
}

// Sweeps that ask less and less for an export: even those of `--effort fast` leave little to gain.
TEST(XorsatBuilder, FewSweepsAreNearlyAsGoodAsMany) {
    const auto rate = [](std::uint32_t wanted_sweeps) {
        return predict_xorsat_fpr(256'000, 8'000, wanted_sweeps);
    };
    EXPECT_LT(rate(4), 1.012 * rate(18));
    EXPECT_LT(rate(10), 1.003 * rate(18));
}

// The exact rate is that of the lookups: within three standard deviations.
TEST(XorsatBuilder, ItsExactRateIsMeasured) {
    const Built built(40'000, 700, sweeps);
    std::mt19937_64 random(7);
    constexpr int trials = 2'000'000;
    double hits = 0;
    for (int i = 0; i < trials; i++) hits += built.holds({random(), random()}) ? 1 : 0;
    const double mean = built.rate() * trials;
    EXPECT_GT(mean, 1000);
    EXPECT_NEAR(hits, mean, 3 * std::sqrt(mean));
}

TEST(XorsatBuilder, ExportsLowerTheSumOfRatesAndLoseNoKey) {
    constexpr std::uint32_t lines = 2500;
    sieve_lookup lookup{};
    lookup.buckets = lines;
    XorsatCounts counts(std::size_t{lines} * SIEVE_XORSAT_EIGHTHS);
    std::mt19937_64 random(3);
    for (std::uint32_t i = 0; i < 31 * lines; i++) counts[random() % counts.size()]++;
    const XorsatExports exports = choose_exports(lookup, counts, sweeps);

    // Loads and eighths by hand, from the decisions alone.
    std::vector<std::uint32_t> loads(lines);
    std::vector<std::uint32_t> eighths(lines);
    for (std::uint32_t line = 0; line < lines; line++)
        for (std::uint32_t eighth = 0; eighth < SIEVE_XORSAT_EIGHTHS; eighth++) {
            const bool exported = (exports.of_line[line] >> eighth & 1) != 0;
            const std::uint32_t keeper = exported ? sieve_xorsat_other(&lookup, line, eighth) : line;
            ASSERT_LT(keeper, lines);
            loads[keeper] += counts[line * SIEVE_XORSAT_EIGHTHS + eighth];
            eighths[keeper]++;
        }
    double before = 0;
    double after = 0;
    for (std::uint32_t line = 0; line < lines; line++) {
        ASSERT_EQ(loads[line], exports.loads[line]);
        ASSERT_EQ(eighths[line], exports.eighths[line]);
        double own = 0;
        for (std::uint32_t e = 0; e < SIEVE_XORSAT_EIGHTHS; e++)
            own += counts[line * SIEVE_XORSAT_EIGHTHS + e];
        before += (own - 31) * (own - 31) / lines;
        after += (loads[line] - 31.0) * (loads[line] - 31.0) / lines;
    }
    EXPECT_NEAR(before, 31, 3) << "Poisson";
    EXPECT_LT(after, 5) << "the loads' variance";
}

// Images of single addresses and of prefixes, against the slow model of tests/model. At 6 bits a key, many
// non-members match.
TEST(XorsatBuilder, ImagesAgreeWithTheModel) {
    for (const bool prefixes : {false, true}) {
        BuildOptions options;
        options.kind.kind = SIEVE_KIND_XORSAT;
        options.bits_per_key = 6;
        options.seed = 8;
        options.trials = 1'000;
        std::mt19937_64 random(9);
        const auto draw = [&random] {
            sieve_key key{};
            key.word[1] = sieve_v4_mapped(0x0a000000U | static_cast<std::uint32_t>(random() >> 40));
            return key;
        };
        KeySet keys(SIEVE_FIELD_SRC);
        std::vector<AddressRange> ranges;
        for (int i = 0; i < 2'000; i++) {
            const sieve_key key = draw();
            const uint128 first = key.word[1] & ~std::uint64_t{15};
            if (prefixes)
                ranges.push_back({first, first + 15});
            else
                keys.add(key);
        }
        const auto built = build_set(std::move(keys), std::move(ranges), options, {});
        ASSERT_TRUE(built) << built.error().message;
        const Image& image = built->image;
        const model::FilterImage model(
            {reinterpret_cast<const unsigned char*>(image.lines().data()), image.bytes()});
        ASSERT_TRUE(model::FilterImage::reads(image.lookup().kind));
        int matched = 0;
        constexpr int asked = 5'000;
        for (int i = 0; i < asked; i++) {
            const sieve_key key = draw();
            ASSERT_EQ(image.contains(key), model.contains({key.word[0], key.word[1], 0, 0, 0}));
            matched += image.contains(key) ? 1 : 0;
        }
        EXPECT_GT(matched, asked / 200);
        EXPECT_LT(matched, asked / 10);
        for (const sieve_witness& witness : image.witnesses())
            ASSERT_TRUE(model.contains({witness.key.word[0], witness.key.word[1], 0, 0, 0}));
    }
}

TEST(XorsatBuilder, IsTheSameOnAnyNumberOfThreads) {
    const auto built_on = [](std::size_t threads) {
        const ThreadLimit limit(threads);
        return Built(130'000, 5'000, sweeps);
    };
    const Built one = built_on(1);
    const Built four = built_on(4);
    EXPECT_EQ(std::memcmp(one.lines.data(), four.lines.data(), one.lines.size() * sizeof(sieve_line)), 0);
}

TEST(XorsatBuilder, GoldenBytes) {
    // A change here is a change of the image format: raise SIEVE_IMAGE_VERSION. Or the builder chooses
    // otherwise: then old images still hold.
    const Built built(2'000, 64, sweeps, 5);
    EXPECT_EQ(XXH3_64bits(built.lines.data(), built.lines.size() * sizeof(sieve_line)), 0x770364abb6391e3eU);
}

} // namespace
} // namespace sieve
