// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Four answers to one question, for a million keys and a million packets. The question goes to the real
// program in the kernel, to the same image in user space, to an independent reading of the image, and to an
// exact set.
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <sieve/exact_table.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "libsieve/analysis/binomial.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/packets/carrier.hpp"
#include "model/image_model.hpp"

namespace sieve::kernel {
namespace {

struct Case {
    std::string name;
    std::uint32_t fields;
    std::uint32_t choices;
    double alpha;
    double bits_per_key;
    std::size_t keys;
    std::size_t packets;
    sieve_kind kind = SIEVE_KIND_BLOCKED;
};

// A flow that a packet can carry: IPv4 or IPv6, and any protocol with ports.
sieve_key random_flow(std::mt19937_64& random) {
    sieve_key key{};
    const bool v4 = random() % 2 == 0;
    for (const int at : {0, 2}) {
        key.word[at] = v4 ? 0 : 0x2001000000000000ULL | (random() >> 16);
        key.word[at + 1] = v4 ? sieve_v4_mapped(static_cast<std::uint32_t>(random())) : random();
    }
    constexpr std::uint8_t protocols[] = {6, 17, 33, 132, 136};
    key.word[4] = sieve_transport_word(static_cast<std::uint16_t>(random()),
                                       static_cast<std::uint16_t>(random()), protocols[random() % 5]);
    return key;
}

std::string exact_form(const sieve_key& key) {
    return {reinterpret_cast<const char*>(&key), sizeof(key)};
}

model::Key model_key(const sieve_key& key) {
    model::Key out{};
    std::copy(std::begin(key.word), std::end(key.word), out.begin());
    return out;
}

/// Whether tests/model reads images of the kind. The unit tests have slow models of parts of the other kinds.
/// The switch has no default, so that whoever adds a kind decides.
bool has_image_model(sieve_kind kind) {
    switch (kind) {
    case SIEVE_KIND_BLOCKED:
    case SIEVE_KIND_XORSAT:
    case SIEVE_KIND_EXACT:
        return true;
    case SIEVE_KIND_NONE:
    case SIEVE_KIND_BLOOM:
    case SIEVE_KIND_DLEFT64:
    case SIEVE_KIND_DLEFT128:
    case SIEVE_KIND_DDLCBF:
    case SIEVE_KIND_RANGES:
        return false;
    }
    return false;
}

class Differential : public testing::TestWithParam<Case> {
  protected:
    // The kernel verifies each hook's program once for all cases.
    static void SetUpTestSuite() {
        for (const HookPoint point : {HookPoint::xdp, HookPoint::egress})
            scratches_.push_back(test::value_or_fail(Scratch::load(false, point)));
    }
    static void TearDownTestSuite() { scratches_.clear(); }

    static std::vector<Scratch> scratches_;
};

std::vector<Scratch> Differential::scratches_;

TEST_P(Differential, AllFourAgree) {
    const Case& c = GetParam();
    std::mt19937_64 random(c.fields * 1000 + c.choices);
    KeySet keys(c.fields);
    for (std::size_t i = 0; i < test::bounded(c.keys); i++) keys.add(random_flow(random));
    std::unordered_set<std::string> exact;
    for (std::size_t i = 0; i < keys.size(); i++) exact.insert(exact_form(keys.at(i)));

    BuildOptions options;
    options.seed = 3;
    if (kind_of(c.kind).exact() == nullptr) options.bits_per_key = c.bits_per_key;
    options.kind.rounds = 4;
    options.kind.kind = c.kind;
    options.kind.choices = c.choices;
    if (kind_of(c.kind).facts().takes_alpha) options.kind.alpha = c.alpha;
    const auto built = build_set(keys, options, {});
    ASSERT_TRUE(built) << built.error().message;
    if (c.kind != SIEVE_KIND_RANGES) { // which counts ranges
        EXPECT_EQ(built->report.keys, exact.size());
    }
    const Image& image = built->image;
    const model::FilterImage model(
        {reinterpret_cast<const unsigned char*>(image.lines().data()), image.bytes()});

    const auto map = FilterMap::create(image, "differential");
    ASSERT_TRUE(map) << map.error().message;
    for (const Scratch& scratch : scratches_) {
        const Status put = scratch.table().replace({.sets = {{.name = "differential", .map_fd = map->fd()}}});
        ASSERT_TRUE(put) << put.error().message;
    }

    packets::Carrier carrier;
    std::uint64_t non_members = 0;
    std::uint64_t matched = 0;
    KeySet drawn(c.fields); // brings a flow into the set's form
    for (std::size_t i = 0; i < test::bounded(c.packets); i++) {
        sieve_key key{};
        if (i % 2 == 0) {
            key = keys.at(random() % keys.size());
        } else {
            drawn.clear();
            drawn.add(random_flow(random));
            key = drawn.at(0);
        }
        const bool member = exact.contains(exact_form(key));
        const bool asked = image.contains(key);
        bool dropped = false;
        for (const Scratch& scratch : scratches_) {
            const auto verdict = scratch.run(carrier.carry(key, c.fields));
            ASSERT_TRUE(verdict) << verdict.error().message;
            dropped = *verdict == SIEVE_VERDICT_DROP;
            ASSERT_EQ(dropped, asked)
                << format_key(key, c.fields) << " at " << hook_point_name(scratch.object().point());
        }
        if (has_image_model(c.kind)) {
            ASSERT_EQ(asked, model.contains(model_key(key))) << format_key(key, c.fields);
        }
        if (member) {
            ASSERT_TRUE(dropped) << "a member was missed: " << format_key(key, c.fields);
        } else {
            non_members++;
            matched += dropped ? 1 : 0;
        }
    }
    EXPECT_TRUE(analysis::fits_rate(matched, non_members, built->report.expected_fpr))
        << matched << " of " << non_members << " non-members, expected " << built->report.expected_fpr;
}

constexpr std::uint32_t pair = SIEVE_FIELD_SRC | SIEVE_FIELD_DST;
INSTANTIATE_TEST_SUITE_P(
    Sets, Differential,
    testing::Values(Case{"Million", SIEVE_FIELD_SRC, 2, 1, 12, 1'000'000, 400'000},
                    Case{"Destination", SIEVE_FIELD_DST, 1, 0, 8, 20'000, 40'000},
                    Case{"Pair", pair, 3, 1, 10, 20'000, 40'000},
                    Case{"FiveTuple", SIEVE_FIELD_ALL, 2, 0.3, 9, 20'000, 40'000},
                    Case{"Service", SIEVE_FIELD_DST | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO, 2, 1, 16, 20'000,
                         40'000},
                    Case{"SourcePort", SIEVE_FIELD_SRC | SIEVE_FIELD_SPORT, 3, 0.5, 20, 20'000, 40'000},
                    Case{"OneKey", SIEVE_FIELD_SRC, 2, 1, 16, 1, 20'000},
                    Case{"OneLine", pair, 3, 1, 4, 100, 20'000},
                    Case{"ManyBits", SIEVE_FIELD_SRC, 1, 0, 40, 5'000, 20'000}),
    [](const auto& info) { return info.param.name; });

/// Every kind with the fewest choices, with its default number of choices, and with the most.
std::vector<Case> cases_of_kinds() {
    constexpr std::uint32_t fields[] = {SIEVE_FIELD_SRC, pair, SIEVE_FIELD_ALL};
    std::vector<Case> cases;
    for (const FilterKind* kind : filter_kinds()) {
        const KindFacts& facts = kind->facts();
        const std::set<std::uint32_t> choices = {facts.choices.least, facts.choices.standard,
                                                 facts.choices.most};
        for (const std::uint32_t count : choices)
            cases.push_back({.name = fmt::format("{}With{}", facts.name, count),
                             .fields = kind->exact() != nullptr ? static_cast<std::uint32_t>(SIEVE_FIELD_SRC)
                                                                : fields[cases.size() % std::size(fields)],
                             .choices = count,
                             .alpha = 1,
                             .bits_per_key = facts.bits_per_key,
                             .keys = 20'000,
                             .packets = 40'000,
                             .kind = facts.number});
    }
    // The form of kind exact for keys of several fields.
    for (const std::uint32_t wide : {pair, std::uint32_t{SIEVE_FIELD_ALL},
                                     std::uint32_t{SIEVE_FIELD_DST | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO},
                                     std::uint32_t{SIEVE_FIELD_DPORT}})
        cases.push_back({.name = fmt::format("exactOfFields{}", wide),
                         .fields = wide,
                         .choices = 2,
                         .alpha = 1,
                         .bits_per_key = 0,
                         .keys = 20'000,
                         .packets = 40'000,
                         .kind = SIEVE_KIND_EXACT});
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Differential, testing::ValuesIn(cases_of_kinds()),
                         [](const auto& info) { return info.param.name; });

} // namespace
} // namespace sieve::kernel
