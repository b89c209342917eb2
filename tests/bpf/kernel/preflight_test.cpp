// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/programs/preflight.hpp"

#include <algorithm>
#include <functional>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "libsieve/build/exact_keys.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/maps/exact_set.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

// One instance for all sets, as the commands use it.
Result<PreflightReport> check(const Image& image, const ExactSet* exact = nullptr) {
    static auto preflight = Preflight::start();
    if (!preflight) return tl::unexpected(preflight.error());
    return preflight->check(image, map_of(image), "tested", exact);
}

TEST(Preflight, PassesWhatWasBuiltRight) {
    for (const auto& [keys, bits] :
         std::vector<std::pair<std::size_t, double>>{{1, 16}, {2, 8}, {100, 4}, {20'000, 8}, {200'000, 12}}) {
        const auto report = check(random_image(keys, keys, bits));
        ASSERT_TRUE(report) << report.error().message;
        EXPECT_GT(report->members, 0U);
        EXPECT_EQ(report->uncarriable, 0U);
        EXPECT_EQ(report->non_members, 4'096U);
    }
}

TEST(Preflight, PassesEveryFieldSet) {
    for (const auto& [fields, format] : std::vector<std::pair<std::string, std::string>>{
             {"src", "10.1.{0}.{1}"},
             {"dst", "2001:db8:{0}::{1}"},
             {"src,dst", "10.1.{0}.{1} 2001:db8::{1}"},
             {"sport", "{0}{1}"},
             {"dport,proto", "{0}{1} udp"},
             {"proto", "{1}"},
             {"src,dst,sport,dport,proto", "10.1.{0}.{1} 10.2.3.4 {0} {1} tcp"},
             {"src,dport", "2001:db8::{0} {1}"}}) {
        std::vector<std::string> keys;
        for (int i = 1; i < 30; i++)
            for (int j = 10; j < 60; j += 5) keys.push_back(fmt::format(fmt::runtime(format), i, j));
        const auto report = check(image_of(keys, fields, 10));
        ASSERT_TRUE(report) << fields << ": " << report.error().message;
        EXPECT_GT(report->members, 0U) << fields;
    }
}

TEST(Preflight, PassesEveryKindAndRefusesItEmptied) {
    for (const FilterKind* one : filter_kinds()) {
        const sieve_kind kind = one->facts().number;
        Image image = random_image(5'000, 6, one->facts().bits_per_key, kind);
        ASSERT_EQ(image.lookup().kind, kind);
        const auto report = check(image);
        ASSERT_TRUE(report) << kind_name(kind) << ": " << report.error().message;
        EXPECT_GT(report->members, 0U);
        for (std::size_t i = 0; i < image.filter().size(); i += 4) image.filter()[i] = {};
        EXPECT_FALSE(check(image)) << kind_name(kind);
    }
}

TEST(Preflight, ExpectsMembersAmongNonMembersOfADenseSet) {
    std::vector<std::string> keys;
    for (int port = 0; port < 40'000; port++) keys.push_back(std::to_string(port));
    const auto report = check(image_of(keys, "dport", 16));
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_NEAR(report->expected_rate, 40'000.0 / 65'536, 0.01);
    EXPECT_NEAR(static_cast<double>(report->matched) / static_cast<double>(report->non_members),
                40'000.0 / 65'536, 0.03);
}

// The builder counts members among 2^17 random keys. It may count none where one in 2^14 is a member.
TEST(Preflight, AShareTooSmallToBeCountedIsNoFault) {
    constexpr std::uint32_t fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    Members members{KeySet(fields), {}};
    for (const char* text : {"* 22", "* 23", "* 25", "* 443"})
        members.key_ranges.push_back(*value_or_fail(parse_member(text, fields)).key_range);
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_XORSAT;
    options.bits_per_key = 24;
    std::uint64_t matched = 0;
    for (std::uint64_t seed = 1; seed <= 40; seed++) { // other random keys each time
        options.seed = seed;
        Image image = value_or_fail(build_set(members, options, {})).image;
        std::fill(std::begin(image.file().covered), std::end(image.file().covered), 0);
        image.seal();
        const ExactSet exact = value_or_fail(
            ExactSet::create(image, value_or_fail(exact_keys(members, image, "list")), "exact"));
        const auto report = check(image, &exact);
        ASSERT_TRUE(report) << report.error().message;
        matched += report->matched;
    }
    EXPECT_GT(matched, 0U); // ten on average
}

TEST(Preflight, CountsKeysThatNoPacketCarries) {
    std::vector<std::string> keys;
    for (int i = 0; i < 100; i++)
        keys.push_back(fmt::format("10.0.0.{} {} {}", i, i, i % 2 == 0 ? "icmp" : "udp"));
    const Image image = image_of(keys, "src,dport,proto");
    const auto report = check(image);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GT(report->members, 0U);
    EXPECT_GT(report->uncarriable, 0U);
    EXPECT_EQ(report->obstacles, std::vector<std::string>{"the protocol has no ports"});
    EXPECT_EQ(report->members + report->uncarriable, image.witnesses().size());
    EXPECT_EQ(report->non_members, 4'096U);
}

// Nothing can be tested, so nothing was: "0 members matched" proves nothing.
TEST(Preflight, RefusesASetOfWhichNoPacketCanCarryAKey) {
    std::vector<std::string> keys;
    for (int i = 0; i < 100; i++) keys.push_back(fmt::format("10.0.0.{} {} icmp", i, i));
    const auto report = check(image_of(keys, "src,dport,proto"));
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, ErrorKind::bad_input);
    EXPECT_NE(report.error().message.find("no packet can carry any"), std::string::npos)
        << report.error().message;
}

TEST(Preflight, RefusesWrongFilters) {
    struct Damage {
        const char* name;
        std::function<void(Image& image)> do_it;
    };
    const std::vector<Damage> damages{
        {"all bits gone",
         [](Image& image) {
             for (sieve_line& line : image.filter()) line = {};
         }},
        {"one line in ten gone",
         [](Image& image) {
             for (std::size_t i = 0; i < image.filter().size(); i += 10) image.filter()[i] = {};
         }},
        {"matches everything",
         [](Image& image) {
             for (sieve_line& line : image.filter())
                 for (auto& word : line.word) word = ~0ULL;
         }},
        {"half the lines match everything",
         [](Image& image) {
             for (std::size_t i = 0; i < image.filter().size(); i += 2)
                 for (auto& word : image.filter()[i].word) word = ~0ULL;
         }},
        {"another hash key",
         [](Image& image) {
             image.lookup().hash_key[0] ^= 1;
             image.lookup().hash_key[1] ^= 1;
         }},
        {"fewer buckets", [](Image& image) { image.lookup().buckets /= 2; }},
        {"no kind", [](Image& image) { image.lookup().kind = SIEVE_KIND_NONE; }},
        {"other fields", [](Image& image) { image.lookup().fields = SIEVE_FIELD_DST; }},
        {"a rate that is too good", [](Image& image) { image.file().expected_fpr = rate_to_bits(1e-4); }},
        {"a rate that is too bad", [](Image& image) { image.file().expected_fpr = rate_to_bits(0.5); }},
    };
    const Image good = random_image(5'000, 5, 6);
    ASSERT_TRUE(check(good));
    for (const Damage& damage : damages) {
        Image image = copy_of(good);
        damage.do_it(image);
        const auto report = check(image);
        ASSERT_FALSE(report) << damage.name;
        EXPECT_EQ(report.error().kind, ErrorKind::bad_input) << damage.name;
        EXPECT_NE(report.error().message.find("set tested"), std::string::npos) << report.error().message;
    }
}

// A map whose rate is within the limits of chance, but whose bits are not the image's.
TEST(Preflight, NoticesAMapThatAnswersOtherwiseThanTheImage) {
    const Image good = random_image(20'000, 5, 6);
    Image damaged = copy_of(good);
    // One line of 235, or half a line where tests make smaller sets (bounded.hpp): at most 1% of non-members.
    const int words = damaged.filter().size() > 200 ? SIEVE_LINE_WORDS : SIEVE_LINE_WORDS / 2;
    for (int w = 0; w < words; w++) damaged.filter()[0].word[w] = ~0ULL;
    auto preflight = Preflight::start();
    ASSERT_TRUE(preflight) << preflight.error().message;
    ASSERT_TRUE(preflight->check(damaged, map_of(damaged), "tested")) << "the damage must be that small";
    const auto report = preflight->check(good, map_of(damaged), "tested");
    ASSERT_FALSE(report);
    EXPECT_NE(report.error().message.find("otherwise than the image"), std::string::npos)
        << report.error().message;
}

TEST(Preflight, TestsOneSetAfterAnother) {
    auto preflight = Preflight::start();
    ASSERT_TRUE(preflight) << preflight.error().message;
    const Image small = random_image(10, 1), large = random_image(100'000, 2);
    for (int i = 0; i < 4; i++) {
        const Image& image = i % 2 == 0 ? small : large;
        const auto report = preflight->check(image, map_of(image), "tested");
        EXPECT_TRUE(report) << report.error().message;
    }
}

} // namespace
} // namespace sieve::kernel
