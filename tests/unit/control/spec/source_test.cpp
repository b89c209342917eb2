// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/source.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/header.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::Files;

FeedSpec filter() {
    FeedSpec spec;
    spec.build.kind.kind = SIEVE_KIND_BLOCKED;
    return spec;
}

struct Remarks {
    std::vector<std::string> texts{};
    Observer observer{};

    Remarks() {
        observer.remark = [this](const std::string& text) { texts.push_back(text); };
    }
};

bool holds(const Image& image, const std::string& key) {
    return image.contains(*parse_key(key, image.lookup().fields));
}

TEST(Source, AFeedIsBuiltAsItsSpecSays) {
    const Files files;
    SetSpec spec = Files::set("c2", files.feed("c2", {"192.0.2.1 443", "192.0.2.2 80"}));
    spec.feed.fields = SIEVE_FIELD_DST | SIEVE_FIELD_DPORT;
    spec.feed.build.kind.kind = SIEVE_KIND_DLEFT64;
    spec.feed.build.bits_per_key = 24;
    const auto opened = open_set(spec, {});
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->image.lookup().kind, SIEVE_KIND_DLEFT64);
    EXPECT_EQ(opened->image.lookup().fields, SIEVE_FIELD_DST | SIEVE_FIELD_DPORT);
    EXPECT_TRUE(holds(opened->image, "192.0.2.2 80"));
    EXPECT_FALSE(opened->exact);
}

TEST(Source, SeveralFeedsAreOneSet) {
    const Files files;
    SetSpec spec = Files::set("bad", files.feed("a", {"192.0.2.1"}));
    spec.sources.push_back(files.feed("b", {"192.0.2.2", "192.0.2.3"}));
    spec.feed = Files::quick(filter());
    spec.verify = Verification{};
    const auto opened = open_set(spec, {});
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->image.file().keys, 3U);
    for (const char* key : {"192.0.2.1", "192.0.2.2", "192.0.2.3"}) EXPECT_TRUE(holds(opened->image, key));
    ASSERT_TRUE(opened->exact);
    EXPECT_EQ(opened->exact->size(), 3U);
    // Lists of the same name are told apart by their folders.
    const std::string folder = std::filesystem::path(files.path("a")).parent_path().filename();
    EXPECT_EQ(label_text(opened->image.file()), folder + "/a " + folder + "/b");
}

// Of a list, nothing but how it is made is asked: it has no false positive, whatever it is made of.
TEST(Source, AddressesAreExact) {
    const Files files;
    const auto opened = [&](const std::vector<std::string>& lines, Remarks& remarks) {
        SetSpec spec = Files::set("bad", files.feed("list", lines));
        spec.verify = Verification{};
        return open_set(spec, remarks.observer);
    };
    const std::vector<std::string> singles{"192.0.2.1", "2001:db8::1", "198.51.100.7"};
    Remarks of_singles;
    const auto exact = opened(singles, of_singles);
    ASSERT_TRUE(exact) << exact.error().message;
    EXPECT_EQ(exact->image.lookup().kind, SIEVE_KIND_EXACT);
    EXPECT_FALSE(exact->exact) << "nothing to verify";
    EXPECT_EQ(of_singles.texts, (std::vector<std::string>{
                                    "set bad: kind exact is exact, so its matches need no verification"}));
    // Prefixes and ranges among them, of both families: still one set without a false positive.
    std::vector<std::string> mixed = singles;
    mixed.insert(mixed.end(), {"10.0.0.0/8", "2001:db8:7::/48", "203.0.113.5-203.0.113.9"});
    Remarks of_mixed;
    const auto ranges = opened(mixed, of_mixed);
    ASSERT_TRUE(ranges) << ranges.error().message;
    EXPECT_EQ(ranges->image.lookup().kind, SIEVE_KIND_RANGES);
    EXPECT_FALSE(ranges->exact);
    EXPECT_EQ(ranges->image.file().entries, 6U);
    ASSERT_EQ(of_mixed.texts.size(), 2U);
    EXPECT_TRUE(
        of_mixed.texts[0].ends_with(": kind ranges, which is exact, since the list has prefixes or ranges"))
        << of_mixed.texts[0];
    for (const std::string& key : singles) EXPECT_TRUE(holds(ranges->image, key)) << key;
    for (const char* key : {"10.255.255.255", "2001:db8:7:ffff::1", "203.0.113.9"})
        EXPECT_TRUE(holds(ranges->image, key)) << key;
    for (const char* key : {"192.0.2.2", "2001:db8::2", "11.0.0.0", "2001:db8:8::", "203.0.113.10"})
        EXPECT_FALSE(holds(ranges->image, key)) << key;
}

// However wide they are, exceptions leave the list and are no members.
TEST(Source, ExceptionsOfAnExactSetAreTakenOut) {
    const Files files;
    SetSpec spec = Files::set("bad", files.feed("list", {"10.1.2.3", "192.0.2.1", "2001:db8::1"}));
    spec.feed.except = files.feed("except", {"10.0.0.0/8", "2001:db8::/32", "198.51.100.7"});
    Remarks remarks;
    const auto opened = open_set(spec, remarks.observer);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->image.lookup().kind, SIEVE_KIND_EXACT);
    EXPECT_EQ(opened->image.file().keys, 1U);
    EXPECT_TRUE(holds(opened->image, "192.0.2.1"));
    for (const char* key : {"10.1.2.3", "2001:db8::1", "198.51.100.7"})
        EXPECT_FALSE(holds(opened->image, key));
    EXPECT_EQ(remarks.texts, (std::vector<std::string>{"2 exceptions were on the list and were taken out"}));
}

TEST(Source, AListForJoiningIsExactAndKept) {
    const Files files;
    SetSpec spec = Files::set("bad", files.feed("list", {"192.0.2.1"}));
    spec.keep_keys = true;
    Remarks remarks;
    const auto opened = open_set(spec, remarks.observer);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->image.lookup().kind, SIEVE_KIND_EXACT);
    EXPECT_TRUE(opened->keys);
    EXPECT_TRUE(remarks.texts.empty());
}

TEST(Source, AnImageTakesNoOptionOfAFeed) {
    const Files files;
    SetSpec spec = Files::set("bad", files.image("bad.sieve", {"192.0.2.1"}));
    EXPECT_TRUE(open_set(spec, {}));
    spec.feed.chosen = {"fpr", "kind"};
    expect_error(open_set(spec, {}), ErrorKind::invalid_request);
    spec.feed.chosen.clear();
    spec.sources.push_back(files.feed("more", {"192.0.2.2"}));
    EXPECT_EQ(open_set(spec, {}).error().kind, ErrorKind::invalid_request);
}

TEST(Source, VerificationTakesTheSetsOwnKeys) {
    const Files files;
    SetSpec image = Files::set("bad", files.image("bad.sieve", {"192.0.2.1", "192.0.2.2"}, filter()));
    image.verify = Verification{};
    EXPECT_EQ(open_set(image, {}).error().kind, ErrorKind::needs_feed);
    image.verify = Verification{files.path("bad.sieve.txt")};
    EXPECT_EQ(open_set(image, {})->exact->size(), 2U);
    image.verify = Verification{files.feed("other", {"192.0.2.1", "192.0.2.9"})};
    EXPECT_EQ(open_set(image, {}).error().kind, ErrorKind::bad_input);

    SetSpec feed = Files::set("bad", files.feed("feed", {"192.0.2.1"}));
    feed.verify = Verification{files.path("feed")};
    EXPECT_TRUE(open_set(feed, {}));
    feed.verify = Verification{files.path("other")};
    EXPECT_EQ(open_set(feed, {}).error().kind, ErrorKind::invalid_request);
}

TEST(Source, SkippedLinesAreRemarked) {
    const Files files;
    SetSpec spec = Files::set("bad", files.feed("feed", {"192.0.2.1", "no address"}));
    EXPECT_EQ(open_set(spec, {}).error().kind, ErrorKind::bad_input);
    spec.feed.skip_invalid = true;
    Remarks remarks;
    ASSERT_TRUE(open_set(spec, remarks.observer));
    ASSERT_EQ(remarks.texts.size(), 2U);
    EXPECT_EQ(remarks.texts[0], "1 malformed line was skipped");
    EXPECT_NE(remarks.texts[1].find("feed:2: "), std::string::npos);
}

} // namespace
} // namespace sieve::control
