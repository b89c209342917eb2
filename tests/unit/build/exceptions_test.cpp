// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/exceptions.hpp"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/build/exact_keys.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "model/image_model.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

sieve_key v4_key(std::uint32_t address) {
    sieve_key key{};
    key.word[1] = sieve_v4_mapped(address);
    return key;
}

AddressRange prefix(const std::string& text) {
    return parse_member(text, SIEVE_FIELD_SRC).value().range.value();
}

Members ipsum() {
    auto feed = read_feed({"tests/data/ipsum.txt"}, SIEVE_FIELD_SRC, {.ranges = true});
    EXPECT_TRUE(feed);
    return {std::move(feed->keys), std::move(feed->ranges)};
}

// 1,000 addresses, of which about `listed` are on the list.
Members partners(const Members& list, std::size_t count, std::size_t listed, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Members members(SIEVE_FIELD_SRC);
    for (std::size_t i = 0; i < count; i++)
        members.keys.add(i < listed ? list.keys.at(random() % list.keys.size())
                                    : v4_key(static_cast<std::uint32_t>(random())));
    return members;
}

model::FilterImage model_of(const Image& image) {
    return model::FilterImage({reinterpret_cast<const unsigned char*>(image.lines().data()), image.bytes()});
}

bool model_holds(const model::FilterImage& model, const sieve_key& key) {
    return model.contains({key.word[0], key.word[1], key.word[2], key.word[3], key.word[4]});
}

BuildOptions seeded(std::uint64_t seed) {
    BuildOptions options;
    options.seed = seed;
    options.bits_per_key = 16;
    options.kind.rounds = 2;
    options.trials = 50'000;
    return options;
}

// A real list at 16 bits a key: without exceptions some of a thousand addresses match; with them none does,
// in user space and by the model, and every other member still does. Many seeds, so that some builds need
// several tries.
TEST(Exceptions, NoneOfAThousandMatches) {
    const Members list = ipsum();
    std::uint32_t tries = 0;
    std::uint64_t matched_without = 0;
    constexpr std::uint32_t builds = 12;
    for (std::uint64_t seed = 1; seed <= builds; seed++) {
        const Members out = partners(list, 1000, 20, seed);
        Members left = list;
        const auto taken = subtract(left, out);
        ASSERT_TRUE(taken);
        EXPECT_GE(taken->keys, 19U);
        EXPECT_EQ(left.keys.size() + taken->keys, list.keys.size());
        const auto plain = build_set(left, seeded(seed), {});
        ASSERT_TRUE(plain) << plain.error().message;
        const auto built = build_set(left, seeded(seed), {}, {.lines = prefixes_of(out)});
        ASSERT_TRUE(built) << built.error().message;
        tries += built->report.tries;
        EXPECT_EQ(built->image.file().exceptions, built->report.exceptions);
        EXPECT_EQ(built->report.excluded, built->report.exceptions) << "one question for each address";
        EXPECT_GE(built->report.exceptions, 999U);
        const model::FilterImage model = model_of(built->image);
        for (std::size_t i = 0; i < out.keys.size(); i++) {
            matched_without += plain->image.contains(out.keys.at(i)) ? 1 : 0;
            ASSERT_FALSE(built->image.contains(out.keys.at(i)));
            ASSERT_FALSE(model_holds(model, out.keys.at(i)));
        }
        for (std::size_t i = 0; i < left.keys.size(); i += 7)
            ASSERT_TRUE(built->image.contains(left.keys.at(i)));
    }
    EXPECT_GT(matched_without, 0U) << "this test would pass without the feature";
    // 1,000 questions at about 2.7e-4: 1.3 tries on average. The bounds are four sigma of twelve builds.
    EXPECT_GT(tries, builds);
    EXPECT_LT(tries, 2.1 * builds);
}

// Prefixes and ranges among list and exceptions: every address inside an exception is outside the set.
TEST(Exceptions, ArePrefixesToo) {
    std::mt19937_64 random(5);
    for (const bool ranges : {false, true}) {
        Members list(SIEVE_FIELD_SRC);
        for (int i = 0; i < 20'000; i++) list.keys.add(v4_key(0x0a000000U | (random() % 0x40000U)));
        if (ranges)
            for (const char* text : {"10.0.0.0/15", "10.2.128.0-10.2.255.7"})
                list.ranges.push_back(prefix(text));
        Members out(SIEVE_FIELD_SRC);
        for (const char* text : {"10.1.64.0/22", "10.2.200.1-10.2.200.77", "172.16.0.0/23"})
            out.ranges.push_back(prefix(text));
        out.keys.add(v4_key(0x0a000005));
        const Members whole = list;
        ASSERT_TRUE(subtract(list, out));
        const auto built = build_set(list, seeded(6), {}, {.lines = prefixes_of(out)});
        ASSERT_TRUE(built) << built.error().message;
        EXPECT_EQ(built->image.lookup().probes > 0, ranges);
        const model::FilterImage model = model_of(built->image);
        const auto excluded = [&](std::uint32_t address) {
            return address == 0x0a000005 || (address >= 0x0a014000 && address <= 0x0a0143ff) ||
                   (address >= 0x0a02c801 && address <= 0x0a02c84d) ||
                   (address >= 0xac100000 && address <= 0xac1001ff);
        };
        for (std::uint32_t address = 0x0a000000; address < 0x0a040000; address++) {
            const sieve_key key = v4_key(address);
            if (excluded(address)) {
                ASSERT_FALSE(built->image.contains(key)) << format_key(key, SIEVE_FIELD_SRC);
                ASSERT_FALSE(model_holds(model, key));
            } else if (ranges && address < 0x0a020000) {
                ASSERT_TRUE(built->image.contains(key)) << format_key(key, SIEVE_FIELD_SRC);
            }
        }
        for (std::size_t i = 0; i < whole.keys.size(); i++) {
            const auto address = static_cast<std::uint32_t>(whole.keys.at(i).word[1]);
            ASSERT_EQ(built->image.contains(whole.keys.at(i)), !excluded(address));
        }
    }
}

TEST(Exceptions, OfSeveralFieldsAreKeys) {
    const std::uint32_t fields = SIEVE_FIELD_DST | SIEVE_FIELD_DPORT;
    Members list(fields);
    for (int i = 0; i < 5000; i++)
        list.keys.add(
            parse_key("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250) + " 443", fields)
                .value());
    Members out(fields);
    for (const char* text : {"10.0.1.1 443", "10.0.1.1 80", "192.0.2.1 443"})
        out.keys.add(parse_key(text, fields).value());
    const auto taken = subtract(list, out);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->keys, 1U);
    const auto built = build_set(list, seeded(1), {}, {.lines = prefixes_of(out)});
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->report.excluded, 3U);
    for (std::size_t i = 0; i < out.keys.size(); i++) EXPECT_FALSE(built->image.contains(out.keys.at(i)));
}

// Too many for the rate: refused before anything is built, with a rate and a size that would do; and they do.
TEST(Exceptions, ThatAreTooManyAreRefusedWithASizeThatWouldDo) {
    const Members list = ipsum();
    const Members out = partners(list, 30'000, 0, 3);
    Members left = list;
    ASSERT_TRUE(subtract(left, out));
    const Exceptions exceptions{.lines = prefixes_of(out)};
    const auto built = build_set(left, seeded(1), {}, exceptions);
    ASSERT_FALSE(built);
    EXPECT_EQ(built.error().kind, ErrorKind::invalid_request);
    const std::string& text = built.error().message;
    const auto at = text.find("a rate of ");
    ASSERT_NE(at, std::string::npos) << text;
    BuildOptions options = seeded(1);
    options.bits_per_key.reset();
    options.fpr = std::stod(text.substr(at + std::strlen("a rate of ")));
    const auto again = build_set(left, options, {}, exceptions);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_LE(again->report.tries, 8U);
    for (std::size_t i = 0; i < out.keys.size(); i++) ASSERT_FALSE(again->image.contains(out.keys.at(i)));
}

TEST(Exceptions, OfAWholeNetworkAreLeftToVerification) {
    Members list(SIEVE_FIELD_SRC);
    for (std::uint32_t i = 0; i < 1000; i++) list.keys.add(v4_key(0x0a000000 + 7 * i));
    const Members whole = list;
    Members out(SIEVE_FIELD_SRC);
    out.ranges.push_back(prefix("0.0.0.0/5"));
    ASSERT_TRUE(subtract(list, out));
    Exceptions exceptions{.lines = prefixes_of(out)};
    expect_error(build_set(list, seeded(1), {}, exceptions), ErrorKind::invalid_request);
    exceptions.verified = true;
    const auto built = build_set(list, seeded(1), {}, exceptions);
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->image.file().exceptions, 1U);
    EXPECT_EQ(built->image.file().excluded, 0U) << "nothing is promised for the filter alone";
    // The image knows its exceptions, so the list that it was built from needs no change to verify it.
    const auto exact = exact_keys(whole, built->image, "list");
    ASSERT_TRUE(exact) << exact.error().message;
    EXPECT_EQ(exact->size(), list.keys.size());
}

// An image whose filter matches an exception is refused, whoever made it.
TEST(Exceptions, OfAnAlteredImageAreChecked) {
    Members list(SIEVE_FIELD_SRC);
    for (std::uint32_t i = 0; i < 1000; i++) list.keys.add(v4_key(0x0a000000 + i));
    Members out(SIEVE_FIELD_SRC);
    out.keys.add(v4_key(0xc0000201));
    auto built = build_set(list, seeded(1), {}, {.lines = prefixes_of(out)});
    ASSERT_TRUE(built) << built.error().message;
    Image& image = built->image;
    const auto check = [&] {
        image.seal();
        return image.check("image");
    };
    EXPECT_TRUE(check());
    const sieve_exception original = image.exceptions()[0];
    image.exceptions()[0].key = v4_key(0x0a000001);
    expect_error(check(), ErrorKind::bad_input);
    image.exceptions()[0] = original;
    image.exceptions()[0].bits.source = 96;
    expect_error(check(), ErrorKind::bad_input);
    image.exceptions()[0].key.word[1] = sieve_v4_mapped(0);
    expect_error(check(), ErrorKind::bad_input);
    image.exceptions()[0] = original;
    image.exceptions()[0].bits.transport = SIEVE_FIELD_DPORT;
    expect_error(check(), ErrorKind::bad_input);
    image.exceptions()[0] = original;
    EXPECT_TRUE(check());
}

TEST(Exceptions, DoNotGoWithAFilterThatChanges) {
    Members list(SIEVE_FIELD_SRC);
    list.keys.add(v4_key(1));
    Members out(SIEVE_FIELD_SRC);
    out.keys.add(v4_key(2));
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_DDLCBF;
    expect_error(build_set(list, options, {}, {.lines = prefixes_of(out)}), ErrorKind::invalid_request);
}

// Keys to spare: none of them matches by a false positive, but members among them stay, and the image says
// nothing of them.
TEST(Spared, NoneMatchesUnlessItIsAMember) {
    std::mt19937_64 random(1);
    std::uint32_t tries = 0;
    std::uint64_t matched_without = 0;
    constexpr std::uint32_t builds = 10;
    for (std::uint32_t i = 0; i < builds; i++) {
        Members list(SIEVE_FIELD_SRC);
        for (std::uint32_t k = 0; k < 5'000; k++) list.keys.add(v4_key(static_cast<std::uint32_t>(random())));
        Exceptions exceptions;
        exceptions.spared = {list.keys.at(7)};
        for (std::uint32_t k = 0; k < 100; k++)
            exceptions.spared.push_back(v4_key(static_cast<std::uint32_t>(random())));
        BuildOptions options;
        options.bits_per_key = 8; // a rate of 0.016: 100 keys take five tries
        options.trials = 50'000;
        const auto plain = build_set(list, options, {});
        const auto spared = build_set(list, options, {}, exceptions);
        ASSERT_TRUE(plain && spared) << spared.error().message;
        const model::FilterImage model = model_of(spared->image);
        EXPECT_TRUE(model_holds(model, exceptions.spared.front()));
        for (std::size_t k = 1; k < exceptions.spared.size(); k++) {
            EXPECT_FALSE(model_holds(model, exceptions.spared[k]));
            matched_without += plain->image.contains(exceptions.spared[k]) ? 1 : 0;
        }
        EXPECT_EQ(spared->report.spared, exceptions.spared.size());
        EXPECT_TRUE(spared->image.exceptions().empty());
        tries += spared->report.tries;
    }
    EXPECT_GT(matched_without, 0U);
    EXPECT_GT(tries, builds);
}

// Likewise in a prefix set, where a member is any address inside a prefix.
TEST(Spared, MembersOfPrefixesAreNoReasonToTryAgain) {
    Members list(SIEVE_FIELD_SRC);
    for (std::uint32_t i = 0; i < 300; i++) {
        const std::uint64_t first = sieve_v4_mapped(0x0a000000U + (i << 12));
        list.ranges.push_back({first, first + 255});
    }
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_BLOCKED;
    options.trials = 50'000;
    Exceptions exceptions;
    for (std::uint32_t i = 0; i < 300; i++) exceptions.spared.push_back(v4_key(0x0a000007U + (i << 12)));
    const auto built = build_set(list, options, {}, exceptions);
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->report.tries, 1U);
    EXPECT_EQ(built->report.spared, 300U);
}

// They are a wish: nothing fails for them, and a build with a seed stays what it was.
TEST(Spared, TooManyOrASeedChangeNothing) {
    std::mt19937_64 random(2);
    Members list(SIEVE_FIELD_SRC);
    for (std::uint32_t k = 0; k < 5'000; k++) list.keys.add(v4_key(static_cast<std::uint32_t>(random())));
    Exceptions many;
    for (std::uint32_t k = 0; k < 1'000; k++)
        many.spared.push_back(v4_key(static_cast<std::uint32_t>(random())));
    BuildOptions options;
    options.bits_per_key = 8;
    options.trials = 50'000;
    const auto built = build_set(list, options, {}, many);
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->report.spared, 0U);
    EXPECT_EQ(built->report.tries, 1U);

    Exceptions few;
    few.spared.assign(many.spared.begin(), many.spared.begin() + 100);
    options.seed = 3;
    const auto plain = build_set(list, options, {});
    const auto seeded = build_set(list, options, {}, few);
    ASSERT_TRUE(plain && seeded);
    EXPECT_EQ(std::memcmp(plain->image.lines().data(), seeded->image.lines().data(), plain->image.bytes()),
              0);
}

} // namespace
} // namespace sieve
