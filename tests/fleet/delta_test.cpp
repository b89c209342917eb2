// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Differences of feeds: made and applied, and taken by nodes from a real store only if they are right.
#include "libsieve/fleet/servers/delta.hpp"

#include <unistd.h>

#include "fleet/fleet_test.hpp"
#include "libsieve/fleet/blob_source.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::fleet::test {
namespace {

UniqueFd file_of(const std::string& content) {
    UniqueFd file = std::move(*memory_file());
    EXPECT_TRUE(write_all(file.get(), content));
    return file;
}

std::string content_of(int file) {
    std::string content(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(file, content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
    return content;
}

// Addresses in numeric order; `changed` replaces some of them.
std::string feed(int count, int changed = 0) {
    std::string text;
    for (int i = 0; i < count; i++) {
        const int octet = changed != 0 && i % changed == 0 ? 7 : 9;
        text += "10." + std::to_string(octet) + "." + std::to_string(i >> 8) + "." + std::to_string(i & 255) +
                "\n";
    }
    return text;
}

TEST(Delta, LeadsFromOneToTheOther) {
    const std::string one = feed(20000), two = feed(20000, 100);
    const UniqueFd before = file_of(one), after = file_of(two), made = std::move(*memory_file());
    const auto delta = make_delta(before.get(), after.get());
    ASSERT_TRUE(delta) << delta.error().message;
    EXPECT_LT(delta->size(), two.size() / 20);
    ASSERT_TRUE(apply_delta(before.get(), *delta, made.get(), two.size()));
    EXPECT_EQ(content_of(made.get()), two);
}

// zstd takes no window of less than 1 KiB.
TEST(Delta, IsMadeOfShortLists) {
    for (const int count : {1, 2, 20, 100}) {
        const std::string one = feed(count), two = feed(count + 1);
        const UniqueFd before = file_of(one), after = file_of(two), made = std::move(*memory_file());
        const auto delta = make_delta(before.get(), after.get());
        ASSERT_TRUE(delta) << delta.error().message;
        ASSERT_TRUE(apply_delta(before.get(), *delta, made.get(), two.size()));
        EXPECT_EQ(content_of(made.get()), two);
    }
}

TEST(Delta, IsRefusedUnlessItFits) {
    const std::string one = feed(2000), two = feed(2000, 50);
    const UniqueFd before = file_of(one), after = file_of(two), empty = std::move(*memory_file());
    const std::string delta = make_delta(before.get(), after.get()).value();
    for (const std::uint64_t bytes : {two.size() - 1, two.size() + 1, std::size_t{0}})
        EXPECT_FALSE(apply_delta(before.get(), delta, std::move(*memory_file()).get(), bytes)) << bytes;
    EXPECT_FALSE(apply_delta(before.get(), delta, empty.get(), ~std::uint64_t{0}));
    EXPECT_FALSE(apply_delta(before.get(), "nonsense", empty.get(), two.size()));
    EXPECT_FALSE(apply_delta(before.get(), "", empty.get(), two.size()));
    EXPECT_FALSE(apply_delta(before.get(), delta.substr(0, delta.size() / 2), empty.get(), two.size()));
    EXPECT_FALSE(apply_delta(empty.get(), delta, empty.get(), two.size()));
    EXPECT_EQ(content_of(empty.get()), "");
    EXPECT_FALSE(make_delta(empty.get(), after.get()));
}

using DeltaTest = FleetTest;

TEST_F(DeltaTest, NodesTakeItWhereItIsRight) {
    const auto has = [&](const std::string& request) {
        return store_.log().find(request) != std::string::npos;
    };
    // nginx writes its log after it has answered.
    const auto logs = [&](const std::string& request) { return await([&] { return has(request); }); };
    const auto named = [](const std::string& from, const std::string& to) {
        return delta_name(sha256_of(from), sha256_of(to));
    };
    const std::string one = feed(500), two = feed(500, 50), three = feed(500, 40), four = feed(500, 30);
    add_node("n");
    ASSERT_TRUE(publish_text(one));
    ASSERT_TRUE(await([&] { return all_have(one); }));
    const auto published = publish_text(two);
    ASSERT_TRUE(published);
    EXPECT_GT(published->sets.at(0).delta_bytes, 0U);
    EXPECT_LT(published->sets.at(0).delta_bytes, two.size() / 2);
    ASSERT_TRUE(await([&] { return all_have(two); }));
    EXPECT_TRUE(logs("GET /blobs/" + named(one, two) + " 200"));
    EXPECT_FALSE(has("GET /blobs/" + sha256_of(two) + " 200"));
    // A node that has nothing takes the whole feed.
    add_node("m");
    ASSERT_TRUE(await([&] { return all_have(two); }));
    EXPECT_TRUE(logs("GET /blobs/" + sha256_of(two) + " 200"));
    // One that is damaged, and one that leads elsewhere: the whole feed makes up for them. Whatever is there
    // already under a name of the same size is not sent again.
    const UniqueFd from = file_of(two), to = file_of(three), elsewhere = file_of(feed(500, 39));
    const std::string right = make_delta(from.get(), to.get()).value();
    store_.put(named(two, three), std::string(right.size(), 'x'));
    ASSERT_TRUE(publish_text(three));
    ASSERT_TRUE(await([&] { return all_have(three); }));
    EXPECT_TRUE(logs("GET /blobs/" + named(two, three) + " 200"));
    EXPECT_TRUE(logs("GET /blobs/" + sha256_of(three) + " 200"));
    store_.kill();
    const UniqueFd now = file_of(three);
    store_.put(named(three, four), make_delta(now.get(), file_of(feed(500, 31)).get()).value());
    store_.put(sha256_of(four), four);
    store_.start();
    // The publisher's own is of another size, perhaps, and would replace it: so the manifest comes without
    // one.
    EtcdClient client(access_.etcd);
    const auto before = read_publication(client, "edge", access_.pinned);
    ASSERT_TRUE(before);
    Manifest manifest = before->manifest->manifest;
    manifest.sets[0].digest = sha256_of(four);
    manifest.sets[0].bytes = four.size();
    ASSERT_TRUE(publish_manifest(client, manifest, *before, key_, milliseconds_now()));
    ASSERT_TRUE(await([&] { return all_have(four); }));
    EXPECT_TRUE(logs("GET /blobs/" + named(three, four) + " 200"));
    EXPECT_TRUE(logs("GET /blobs/" + sha256_of(four) + " 200"));
    // The store has lost the feed before: there is no difference, and the fleet goes on.
    store_.remove_all();
    const auto last = publish_text(one);
    ASSERT_TRUE(last) << last.error().message;
    EXPECT_EQ(last->sets.at(0).delta_bytes, 0U);
    EXPECT_TRUE(await([&] { return all_have(one); }));
}

} // namespace
} // namespace sieve::fleet::test
