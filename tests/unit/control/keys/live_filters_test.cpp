// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/live_filters.hpp"

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/header.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

class LiveFiltersTest : public testing::Test {
  protected:
    test::FakeKernel kernel;
    test::Files files;
    KeyDifference difference{SIEVE_FIELD_SRC};

    Image image(const std::vector<std::string>& entries, sieve_kind kind = SIEVE_KIND_DDLCBF) {
        FeedSpec spec;
        spec.build.kind.kind = kind;
        return Image::load(std::filesystem::path(files.image("image", entries, spec))).value();
    }
    static sieve_key key(const std::string& text) { return parse_key(text, SIEVE_FIELD_SRC).value(); }
    [[nodiscard]] bool has(std::uint32_t map_id, const std::string& address) {
        auto filter = kernel.open_filter(map_id).value();
        const sieve_key wanted = key(address);
        return kind_of(filter->lookup())
            .holds(filter->lookup(),
                   sieve_hash_key(&wanted, filter->lookup().hash_key, filter->lookup().fields),
                   filter->lines().data());
    }
    Result<std::vector<FilterChanged>> change(bool rates = false) {
        return change([&](const LiveFilter&) { return &difference; }, rates);
    }
    Result<std::vector<FilterChanged>> change(const DifferenceFor& difference_for, bool rates) {
        SIEVE_ASSIGN(LiveFilters filters, LiveFilters::hold(kernel, "bad", {}));
        return filters.change(difference_for, rates);
    }
};

TEST_F(LiveFiltersTest, AllOfThatNameGetTheDifferenceUnderOneLock) {
    const std::uint32_t first = kernel.put("bad").map_id;
    kernel.put_filter(first, image({"192.0.2.1", "192.0.2.2"}));
    kernel.at_tc[kernel::HookPoint::egress].ours = true;
    kernel.at_tc[kernel::HookPoint::egress].program = 41;
    kernel.at_tc[kernel::HookPoint::egress].table.sets.push_back({.name = "bad", .map_id = 700});
    kernel.put_filter(700, image({"192.0.2.1", "192.0.2.2"}));
    difference.removed.add(key("192.0.2.1"));
    difference.added.add(key("192.0.2.3"));
    difference.strangers = {key("192.0.2.3"), key("192.0.2.4")};
    const auto done = change(true);
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_EQ(done->size(), 2U);
    for (const FilterChanged& filter : *done) {
        EXPECT_EQ(filter.done, 2U);
        EXPECT_EQ(filter.filter.changes, 2U);
        EXPECT_EQ(filter.filter.keys, 2U);
        EXPECT_TRUE(filter.mistaken); // 192.0.2.3 is a member
        ASSERT_TRUE(filter.expected_fpr);
        EXPECT_EQ(rate_from_bits(kernel.read_filter(filter.filter.map_id)->file.expected_fpr),
                  *filter.expected_fpr);
        EXPECT_FALSE(has(filter.filter.map_id, "192.0.2.1"));
        EXPECT_TRUE(has(filter.filter.map_id, "192.0.2.2"));
        EXPECT_TRUE(has(filter.filter.map_id, "192.0.2.3"));
    }
    EXPECT_EQ(kernel.count("lock"), 1U);
}

TEST_F(LiveFiltersTest, AbsentKeysAreCountedAndChangeNothing) {
    const std::uint32_t id = kernel.put("bad").map_id;
    kernel.put_filter(id, image({"192.0.2.1"}));
    difference.removed.add(key("192.0.2.9"));
    const auto done = change();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->front().absent, 1U);
    EXPECT_EQ(done->front().done, 0U);
    EXPECT_FALSE(done->front().expected_fpr);
    EXPECT_TRUE(has(id, "192.0.2.1"));
}

TEST_F(LiveFiltersTest, AFilterThatCannotTakeKeysIsLeftAlone) {
    const std::uint32_t id = kernel.put("bad").map_id;
    kernel.put_filter(id, image({"192.0.2.1"}, SIEVE_KIND_BLOCKED));
    difference.added.add(key("192.0.2.9"));
    const auto done = change();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::invalid_request);
    bool asked = false;
    const auto looked = change(
        [&](const LiveFilter& filter) -> const KeyDifference* {
            asked = true;
            EXPECT_FALSE(filter.changeable);
            return nullptr;
        },
        false);
    ASSERT_TRUE(looked);
    EXPECT_TRUE(asked);
    EXPECT_FALSE(looked->front().touched);
}

TEST_F(LiveFiltersTest, AVerifiedSetIsNotChangeable) {
    const std::uint32_t id = kernel.put("bad", SIEVE_ACTION_DROP, true).map_id;
    kernel.put_filter(id, image({"192.0.2.1"}));
    difference.added.add(key("192.0.2.9"));
    EXPECT_FALSE(change());
    EXPECT_FALSE(has(id, "192.0.2.9"));
}

TEST_F(LiveFiltersTest, WithoutTheLockNothingIsAsked) {
    kernel.busy = true;
    const auto done = change();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::busy);
}

} // namespace
} // namespace sieve::control
