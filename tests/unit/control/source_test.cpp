// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/source.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "libsieve/feeds/key_text.hpp"
#include "libsieve/image/header.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

using test::Files;

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

TEST(Source, AnImageTakesNoOptionOfAFeed) {
    const Files files;
    SetSpec spec = Files::set("bad", files.image("bad.sieve", {"192.0.2.1"}));
    EXPECT_TRUE(open_set(spec, {}));
    spec.feed.chosen = {"fpr", "kind"};
    const auto refused = open_set(spec, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
    EXPECT_NE(refused.error().message.find("fpr and kind"), std::string::npos) << refused.error().message;
    spec.feed.chosen.clear();
    spec.sources.push_back(files.feed("more", {"192.0.2.2"}));
    EXPECT_EQ(open_set(spec, {}).error().kind, ErrorKind::invalid_request);
}

TEST(Source, VerificationTakesTheSetsOwnKeys) {
    const Files files;
    SetSpec image = Files::set("bad", files.image("bad.sieve", {"192.0.2.1", "192.0.2.2"}));
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
    std::vector<std::string> remarks;
    Observer observer;
    observer.remark = [&](const std::string& text) { remarks.push_back(text); };
    ASSERT_TRUE(open_set(spec, observer));
    ASSERT_EQ(remarks.size(), 2U);
    EXPECT_EQ(remarks[0], "1 malformed line was skipped");
    EXPECT_NE(remarks[1].find("feed:2: "), std::string::npos);
}

} // namespace
} // namespace sieve::control
