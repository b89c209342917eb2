// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Prefix sets of the kind that counts (filters/prefixes/prefix_entries.hpp), as they are built.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/build/exact_keys.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "unit/keys/members_of_texts.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

using test::members_of_texts;

BuildOptions options_of(std::uint64_t seed) {
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_DDLCBF;
    options.prefixes.max_probes = 1;
    options.seed = seed;
    options.trials = 1'000;
    return options;
}

// Prefixes from /`shortest` to /32 of one address, one inside the other: all expand to that address.
std::vector<std::string> nested(unsigned shortest) {
    std::vector<std::string> texts;
    for (unsigned length = shortest; length <= 32; length++)
        texts.push_back("10.0.0.0/" + std::to_string(length));
    return texts;
}

// As many as a bucket can count, in a filter that is just full.
TEST(CountingPrefixes, OneInsideTheOtherFindRoom) {
    for (std::uint64_t seed = 1; seed <= 20; seed++) {
        BuildOptions options = options_of(seed);
        options.bits_per_key = 22;
        const auto built = build_set(members_of_texts(nested(23)), options, {});
        ASSERT_TRUE(built) << seed << ": " << built.error().message;
        EXPECT_EQ(built->report.keys, 1023U) << "each prefix counts, wherever it is";
        for (const char* text : {"10.0.0.0", "10.0.0.1", "10.0.1.255"})
            EXPECT_TRUE(built->image.contains(parse_key(text, SIEVE_FIELD_SRC).value())) << text;
    }
}

// Sixty nests of seven prefixes each, in little room: only a builder that begins with the most frequent keys
// finds empty buckets for them. In the order of their hashes, none of these twenty filters can be built.
TEST(CountingPrefixes, ManyCrowdedKeysFindRoom) {
    std::vector<std::string> texts;
    for (int nest = 0; nest < 60; nest++)
        for (int length = 26; length <= 32; length++)
            texts.push_back("10." + std::to_string(nest) + ".0.0/" + std::to_string(length));
    int built = 0;
    for (std::uint64_t seed = 1; seed <= 20; seed++) {
        BuildOptions options = options_of(seed);
        options.bits_per_key = 18;
        if (build_set(members_of_texts(texts), options, {})) built++;
    }
    EXPECT_GE(built, 19);
}

TEST(CountingPrefixes, TooManyForACounterAreRefused) {
    BuildOptions options = options_of(1);
    expect_error(build_set(members_of_texts(nested(22)), options, {}), ErrorKind::bad_input);
    options.prefixes.max_probes = 4;
    EXPECT_TRUE(build_set(members_of_texts(nested(22)), options, {}));
}

TEST(CountingPrefixes, TheSameOneTwiceCountsOnce) {
    std::vector<std::string> texts = nested(24);
    const auto once = build_set(members_of_texts(texts), options_of(1), {});
    texts.insert(texts.end(), {"10.0.0.0/24", "10.0.0.0/31", "10.0.0.0"});
    const auto twice = build_set(members_of_texts(texts), options_of(1), {});
    ASSERT_TRUE(once && twice);
    EXPECT_EQ(twice->report.keys, once->report.keys);
    EXPECT_EQ(twice->report.duplicates, 3U);
}

// Among several fields, entries count that cross as well as those inside each other.
TEST(CountingPrefixes, AmongSeveralFieldsShareKeys) {
    constexpr std::uint32_t fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_PROTO;
    const auto list = [](unsigned crossing) {
        std::vector<std::string> texts;
        for (unsigned i = 0; i < crossing; i++)
            texts.push_back("10.0.0.0/" + std::to_string(32 - i) + " 192.0.0.0/" +
                            std::to_string(33 - crossing + i) + " tcp");
        return texts;
    };
    BuildOptions options = options_of(1);
    options.bits_per_key = 30;
    const auto built = build_set(members_of_texts(list(10), fields), options, {});
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->report.keys, 10U << 9U) << "each is 2^9 keys of the only probe";
    for (const char* text :
         {"10.0.0.0 192.0.0.0 tcp", "10.0.0.0 192.0.1.255 tcp", "10.0.1.255 192.0.0.0 tcp"})
        EXPECT_TRUE(built->image.contains(parse_key(text, fields).value())) << text;
    EXPECT_TRUE(exact_keys(members_of_texts(list(10), fields), built->image, "list"));
    expect_error(build_set(members_of_texts(list(11), fields), options, {}), ErrorKind::bad_input);
}

// The rate that a build predicts and measures is of all probes together.
TEST(CountingPrefixes, AmongSeveralFieldsHaveThePredictedRate) {
    constexpr std::uint32_t fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    std::vector<std::string> texts;
    for (int i = 0; i < 4000; i++)
        texts.push_back("10." + std::to_string(i / 256) + "." + std::to_string(i % 256) +
                        (i % 2 == 0 ? ".0/24 53" : ".7 80"));
    texts.emplace_back("192.0.2.0/24 *");
    BuildOptions options = options_of(2);
    options.prefixes.max_probes = 4;
    options.bits_per_key = 24;
    options.trials = 1'000'000;
    const auto built = build_set(members_of_texts(texts, fields), options, {});
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->report.keys, 4001U);
    EXPECT_EQ(built->image.probes().count[SIEVE_FAMILY_V4], 3U);
    EXPECT_GT(built->report.measured_hits, 10U);
    EXPECT_NEAR(built->report.measured_fpr, built->report.expected_fpr, 0.5 * built->report.expected_fpr);
}

TEST(CountingPrefixes, HaveTheLengthsThatWereNamed) {
    BuildOptions options = options_of(1);
    options.prefixes.max_probes = 4;
    options.prefixes.lengths[SIEVE_FAMILY_V4] = {112};
    const auto built = build_set(members_of_texts({"10.0.0.1"}), options, {});
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->image.probes().count[SIEVE_FAMILY_V4], 2U);
    EXPECT_EQ(built->image.probes().length[SIEVE_FAMILY_V4][0], 112U);
    EXPECT_TRUE(exact_keys(members_of_texts({"10.0.0.1"}), built->image, "list"));
    options.kind.kind = SIEVE_KIND_BLOCKED;
    EXPECT_FALSE(build_set(members_of_texts({"10.0.0.1"}), options, {}));
}

} // namespace
} // namespace sieve
