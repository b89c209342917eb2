// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/live_filters.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "libsieve/control/keys/exact_set.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/key_order.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

class LiveFiltersTest : public testing::Test {
  protected:
    test::FakeKernel kernel;
    test::Files files;
    KeyDifference difference{SIEVE_FIELD_SRC};

    Image image(const std::vector<std::string>& entries, sieve_kind kind = SIEVE_KIND_EXACT) {
        FeedSpec spec;
        spec.build.kind.kind = kind;
        return Image::load(std::filesystem::path(files.image("image", entries, spec))).value();
    }
    static sieve_key key(const std::string& text) { return parse_key(text, SIEVE_FIELD_SRC).value(); }
    [[nodiscard]] bool has(std::uint32_t map_id, const std::string& address) {
        const auto filter = kernel.open_filter(map_id).value();
        const sieve_lookup& lookup = filter->lookup();
        const sieve_key wanted = key(address);
        if (lists_and_changes(lookup)) return open_table(kernel, "bad", map_id)->table->contains(wanted);
        return kind_of(lookup).holds(lookup, sieve_hash_key(&wanted, lookup.hash_key, lookup.fields),
                                     filter->lines().data());
    }
    Result<std::vector<FilterChanged>> change() {
        return change([&](const LiveFilter&) { return FilterDue{.difference = &difference}; });
    }
    Result<std::vector<FilterChanged>> change(const DueFor& due_for) {
        SIEVE_ASSIGN(LiveFilters filters, LiveFilters::hold(kernel, "bad", {}));
        return filters.change(due_for);
    }
    [[nodiscard]] std::uint64_t keys_in(std::uint32_t map_id) {
        return kernel.open_filter(map_id).value()->file().keys;
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
    const auto done = change();
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_EQ(done->size(), 2U);
    for (const FilterChanged& filter : *done) {
        EXPECT_EQ(filter.done, 2U);
        EXPECT_EQ(filter.filter.changes, 2U);
        EXPECT_EQ(keys_in(filter.filter.map_id), 2U);
        EXPECT_FALSE(has(filter.filter.map_id, "192.0.2.1"));
        EXPECT_TRUE(has(filter.filter.map_id, "192.0.2.2"));
        EXPECT_TRUE(has(filter.filter.map_id, "192.0.2.3"));
    }
    EXPECT_EQ(kernel.count("lock"), 1U);
}

// The joint filters of both tables know the old keys: that of the table in force, and that of the one that
// comes back.
TEST_F(LiveFiltersTest, AChangeOnProbationHoldsNothingUp) {
    using namespace std::chrono_literals;
    const std::uint32_t id = kernel.put("bad").map_id;
    kernel.put_filter(id, image({"192.0.2.1", "192.0.2.2"}));
    kernel.put("other");
    for (std::uint32_t number = 0; number < 2; number++) kernel.running.table.sets[number].joined = number;
    kernel.running.returning = kernel.running.table;
    kernel.running.table.probation = 60s;
    difference.added.add(key("192.0.2.3"));
    const auto done = change();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(has(id, "192.0.2.3"));
    EXPECT_FALSE(kernel.running.table.find("bad")->joined);
    EXPECT_FALSE(kernel.running.returning.find("bad")->joined);
    EXPECT_EQ(kernel.count("leave joint"), 1U);
    EXPECT_EQ(kernel.count("replace"), 0U);
}

// The set itself came or went with the change, or has another filter in each table.
TEST_F(LiveFiltersTest, AFilterThatMayComeBackGetsTheDifference) {
    using namespace std::chrono_literals;
    const std::uint32_t id = kernel.put("bad").map_id;
    kernel.put_filter(id, image({"192.0.2.1"}));
    kernel.put_filter(700, image({"192.0.2.1"}));
    difference.added.add(key("192.0.2.3"));
    kernel.running.returning.sets.push_back({.name = "bad", .map_id = 700});
    kernel.running.table.probation = 60s;
    auto done = change();
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_EQ(done->size(), 2U);
    EXPECT_TRUE(done->at(0).filter.in_force);
    EXPECT_FALSE(done->at(1).filter.in_force);
    EXPECT_TRUE(has(id, "192.0.2.3") && has(700, "192.0.2.3"));
    kernel.running.table.sets.clear();
    difference.added.add(key("192.0.2.4"));
    done = change();
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_EQ(done->size(), 1U);
    EXPECT_TRUE(has(700, "192.0.2.4"));
}

TEST_F(LiveFiltersTest, WhatIsDoneAlreadyIsNotDoneAgain) {
    const std::uint32_t id = kernel.put("bad").map_id;
    kernel.put_filter(id, image({"192.0.2.1"}));
    difference.removed.add(key("192.0.2.9"));
    difference.added.add(key("192.0.2.1"));
    const auto done = change();
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->front().touched);
    EXPECT_EQ(done->front().done, 0U);
    EXPECT_EQ(done->front().filter.changes, 0U);
    EXPECT_EQ(keys_in(id), 1U);
}

TEST_F(LiveFiltersTest, AFilterBecomesTheList) {
    const std::uint32_t id = kernel.put("bad").map_id;
    kernel.put_filter(id, image({"192.0.2.1", "192.0.2.2", "192.0.2.3"}));
    const std::vector<sieve_key> wanted{key("192.0.2.2"), key("192.0.2.9")};
    const WantedKeys list{.contains =
                              [&](const sieve_key& one) {
                                  return std::ranges::any_of(
                                      wanted, [&](const sieve_key& other) { return same_key(one, other); });
                              },
                          .for_each = [&](const auto& visit) { std::ranges::for_each(wanted, visit); }};
    const auto done = change([&](const LiveFilter&) { return FilterDue{.list = &list}; });
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->front().done, 3U);
    EXPECT_EQ(keys_in(id), 2U);
    EXPECT_TRUE(has(id, "192.0.2.2") && has(id, "192.0.2.9"));
    EXPECT_FALSE(has(id, "192.0.2.1") || has(id, "192.0.2.3"));
    EXPECT_EQ(change([&](const LiveFilter&) { return FilterDue{.list = &list}; })->front().done, 0U);
}

TEST_F(LiveFiltersTest, WhatFindsNoRoomIsCounted) {
    const std::uint32_t id = kernel.put("bad").map_id;
    kernel.put_filter(id, image({"192.0.2.1"}));
    for (int i = 0; i < 250; i++) difference.added.add(key("198.51.100." + std::to_string(i)));
    const auto done = change();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_GT(done->front().no_room, 0U);
    EXPECT_EQ(done->front().done + done->front().no_room, 250U);
    EXPECT_EQ(keys_in(id), 1 + done->front().done);
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
    const auto looked = change([&](const LiveFilter& filter) {
        asked = true;
        EXPECT_FALSE(filter.changeable);
        return FilterDue();
    });
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
    kernel.refuse("lock", ErrorKind::busy);
    const auto done = change();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::busy);
}

} // namespace
} // namespace sieve::control
