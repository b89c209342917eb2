// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Prefix sets in the kernel: real lists of prefixes against a scan of their ranges.
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/bpf.h>

#include "bpf/bounded.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/analysis/binomial.hpp"
#include "libsieve/build/measure.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/programs/preflight.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/packets/carrier.hpp"
#include "model/image_model.hpp"

namespace sieve::kernel {
namespace {

struct Case {
    const char* name;
    std::uint32_t field;
    std::uint32_t max_probes;
    double bits_per_key;
    sieve_kind kind = SIEVE_KIND_BLOCKED;
    std::optional<std::uint32_t> choices{};
};

class Prefixes : public testing::TestWithParam<Case> {};

sieve_key key_of(uint128 address, std::uint32_t field) {
    sieve_key key{};
    key.word[field == SIEVE_FIELD_SRC ? 0 : 2] = static_cast<std::uint64_t>(address >> 64);
    key.word[field == SIEVE_FIELD_SRC ? 1 : 3] = static_cast<std::uint64_t>(address);
    return key;
}

// The German prefixes of both families in one set. Both ends and a random address of every entry match.
// Random addresses outside match as often as expected for their family.
TEST_P(Prefixes, OfACountryMatchInsideAndHardlyOutside) {
    const Case& c = GetParam();
    auto feed = read_feed({"tests/data/de-ipv4.cidr", "tests/data/de-ipv6.cidr"}, c.field, {.ranges = true});
    ASSERT_TRUE(feed) << feed.error().message;
    ASSERT_EQ(feed->ranges.size() + feed->keys.size(), 8534U + 3033U);
    std::vector<AddressRange> all = feed->ranges;
    for (std::size_t i = 0; i < feed->keys.size(); i++) {
        const sieve_key key = feed->keys.at(i);
        const __u64* words = key.word + (c.field == SIEVE_FIELD_SRC ? 0 : 2);
        all.push_back({address_number(words[0], words[1]), address_number(words[0], words[1])});
    }
    const auto members = plan_prefixes(all, {.max_probes = 8, .max_keys = 1ULL << 40});
    ASSERT_TRUE(members);

    BuildOptions options;
    options.seed = 17;
    options.kind.kind = c.kind;
    options.kind.choices = c.choices;
    options.kind.rounds = 4;
    options.bits_per_key = c.bits_per_key;
    options.prefixes.max_probes = c.max_probes;
    const auto built = build_set(std::move(feed->keys), std::move(feed->ranges), options, {});
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_LE(built->report.probes.count[0], c.max_probes);
    const Image& image = built->image;
    std::optional<model::FilterImage> model;
    if (model::FilterImage::reads(c.kind))
        model.emplace(std::span(reinterpret_cast<const unsigned char*>(image.lines().data()), image.bytes()));

    const auto map = FilterMap::create(image, "prefixes");
    ASSERT_TRUE(map) << map.error().message;
    auto preflight = Preflight::start();
    ASSERT_TRUE(preflight) << preflight.error().message;
    const auto passed = preflight->check(image, *map, "prefixes");
    ASSERT_TRUE(passed) << passed.error().message;
    const Scratch& scratch = test::shared_program();
    ASSERT_TRUE(scratch.table().replace({.sets = {{.name = "prefixes", .map_fd = map->fd()}}}));

    packets::Carrier carrier;
    std::mt19937_64 random(18);
    const auto dropped = [&](uint128 address) {
        const sieve_key key = key_of(address, c.field);
        const auto verdict = scratch.run(carrier.carry(key, c.field));
        EXPECT_TRUE(verdict);
        const bool asked = image.contains(key);
        EXPECT_EQ(*verdict == XDP_DROP, asked) << format_key(key, c.field);
        return asked;
    };
    for (const AddressRange& range : all) {
        const uint128 inside = range.first + (range.last - range.first) / (2 + random() % 9);
        for (const uint128 address : {range.first, range.last, inside}) {
            ASSERT_TRUE(dropped(address))
                << "a member was missed: " << format_key(key_of(address, c.field), c.field);
            const sieve_key key = key_of(address, c.field);
            if (!model) continue;
            ASSERT_TRUE(model->contains({key.word[0], key.word[1], key.word[2], key.word[3], key.word[4]}));
        }
    }
    for (const bool v4 : {true, false}) {
        std::uint64_t non_members = 0;
        std::uint64_t matched = 0;
        for (std::size_t i = 0; i < test::bounded(100'000); i++) {
            const uint128 address = v4 ? all_ipv4.first + static_cast<std::uint32_t>(random())
                                       : address_number(0x2000000000000000ULL | (random() >> 3), random());
            if (is_member(*members, address)) continue;
            non_members++;
            matched += dropped(address) ? 1 : 0;
        }
        const double expected =
            expected_fpr_of(image, built->report.expected_fpr, key_of(v4 ? all_ipv4.first : 1, c.field));
        EXPECT_LE(expected, built->report.expected_fpr);
        EXPECT_TRUE(analysis::fits_rate(matched, non_members, expected))
            << matched << " of " << non_members << ", expected " << expected;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Sets, Prefixes,
    testing::Values(Case{"FourProbes", SIEVE_FIELD_SRC, 4, 12}, Case{"EightProbes", SIEVE_FIELD_DST, 8, 16},
                    Case{"TwoProbes", SIEVE_FIELD_SRC, 2, 8},
                    Case{"Xorsat", SIEVE_FIELD_SRC, 4, 12, SIEVE_KIND_XORSAT},
                    Case{"Bloom", SIEVE_FIELD_DST, 4, 12, SIEVE_KIND_BLOOM},
                    Case{"Dleft64", SIEVE_FIELD_SRC, 4, 16, SIEVE_KIND_DLEFT64},
                    Case{"Dleft128", SIEVE_FIELD_DST, 4, 16, SIEVE_KIND_DLEFT128},
                    Case{"ThreeSubtables", SIEVE_FIELD_SRC, 4, 16, SIEVE_KIND_DLEFT64, 3},
                    Case{"CountingTwo", SIEVE_FIELD_SRC, 4, 40, SIEVE_KIND_DDLCBF, 2},
                    Case{"Counting", SIEVE_FIELD_SRC, 4, 28, SIEVE_KIND_DDLCBF}),
    [](const auto& info) { return info.param.name; });

} // namespace
} // namespace sieve::kernel
