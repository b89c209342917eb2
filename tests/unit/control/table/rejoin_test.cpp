// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/rejoin.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/joint/leave_joint.hpp"
#include "libsieve/control/keys/change_keys.hpp"
#include "libsieve/control/table/apply.hpp"
#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/control/table/swap.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;
using namespace std::chrono_literals;

class Rejoin : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    std::vector<std::string> remarks;

    // Three sets that are joined.
    Rejoin() {
        TableSpec spec;
        spec.interface = "eth0";
        spec.sets = {feed("a", {"192.0.2.1", "192.0.2.2"}), feed("b", {"192.0.2.2", "192.0.2.3"}),
                     feed("c", {"192.0.2.4"})};
        spec.join = true;
        EXPECT_TRUE(apply(kernel, spec, {}));
        kernel.steps.clear();
    }
    SetSpec feed(const std::string& name, const std::vector<std::string>& lines) const {
        return Files::set(name, files.feed(name, lines));
    }
    void swap_in(const std::string& name, const std::vector<std::string>& lines) {
        const auto done = swap(kernel, {.interface = "eth0"}, feed(name, lines), {});
        EXPECT_TRUE(done) << done.error().message;
        kernel.steps.clear();
    }
    // The lists as the files have them now.
    std::vector<SetList> lists(const std::vector<std::string>& names) {
        std::vector<SetList> all;
        for (const std::string& name : names)
            all.push_back(read_set_list(Files::set(name, files.path(name)), {}).value());
        return all;
    }
    Result<Rejoined> rejoin_all() { return run({"a", "b", "c"}); }
    Result<Rejoined> run(const std::vector<std::string>& names) {
        Observer observer;
        observer.remark = [this](const std::string& text) { remarks.push_back(text); };
        return rejoin(kernel, {.interface = "eth0"}, lists(names), observer);
    }
    Error refused(const std::vector<std::string>& names) {
        const auto done = run(names);
        EXPECT_FALSE(done);
        EXPECT_FALSE(kernel.changed());
        return done ? Error{} : done.error();
    }
    [[nodiscard]] std::optional<std::uint32_t> number(const std::string& name) const {
        return kernel.running.table.find(name)->joined;
    }
    [[nodiscard]] std::size_t unjoined() {
        return count_unjoined(kernel, kernel.running.table, [](const std::string&) { return true; }).value();
    }
};

TEST_F(Rejoin, ASwappedSetIsJoinedAgain) {
    EXPECT_EQ(unjoined(), 0U);
    swap_in("b", {"192.0.2.5"});
    EXPECT_EQ(number("b"), std::nullopt);
    EXPECT_EQ(unjoined(), 1U);
    const kernel::TableInForce before = kernel.running.table;
    const auto done = rejoin_all();
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_TRUE(done->joined);
    EXPECT_EQ(kernel.steps,
              (std::vector<std::string>{"bring in joint of a b c", "lock", "replace", "unlock"}));
    const kernel::TableInForce& now = kernel.running.table;
    EXPECT_EQ(now.joint_id, done->joined->maps.filter_id);
    EXPECT_NE(now.joint_id, before.joint_id);
    for (std::uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(now.sets[i].joined, i);
        EXPECT_EQ(now.sets[i].map_id, before.sets[i].map_id);
        EXPECT_EQ(now.sets[i].action, before.sets[i].action);
    }
    const auto find = [&](const char* address) {
        return done->joined->filter.find(*parse_key(address, SIEVE_FIELD_SRC));
    };
    EXPECT_EQ(find("192.0.2.2"), 0U);
    EXPECT_EQ(find("192.0.2.3"), std::nullopt) << "it was in the list before";
    EXPECT_EQ(find("192.0.2.5"), 1U);
    EXPECT_EQ(unjoined(), 0U);
}

TEST_F(Rejoin, AListOfOtherKeysIsRefused) {
    const auto is_refused = [&](const std::vector<std::string>& lines) {
        files.feed("b", lines);
        expect_error(refused({"a", "b", "c"}), ErrorKind::bad_input);
    };
    is_refused({"192.0.2.2", "192.0.2.3", "192.0.2.7"});
    is_refused({"192.0.2.2"});
    is_refused({"192.0.2.2", "192.0.2.7"});
    files.feed("b", {"192.0.2.3", "192.0.2.2", "192.0.2.2"});
    EXPECT_TRUE(rejoin_all()) << "order and repetitions do not matter";
}

TEST_F(Rejoin, SetsThatAreNotNamedAreAskedByThemselves) {
    ASSERT_TRUE(run({"a", "c"}));
    EXPECT_EQ(number("a"), 0U);
    EXPECT_EQ(number("b"), std::nullopt);
    EXPECT_EQ(number("c"), 1U);
}

// As before a change of its keys, which the joint filter would not know.
TEST_F(Rejoin, ASetMayLeaveTheJointFilter) {
    const auto leave = [&](const char* set) {
        const Held lock = hold_lock(kernel, {}).value();
        const Status left = leave_joint(kernel, find_ours(kernel, {.interface = "eth0"}).value(),
                                        kernel.running.table.find(set)->map_id);
        ASSERT_TRUE(left) << left.error().message;
    };
    leave("b");
    EXPECT_EQ(number("a"), 0U);
    EXPECT_EQ(number("b"), std::nullopt);
    EXPECT_EQ(number("c"), 2U) << "its number in the filter stays";
    EXPECT_NE(kernel.running.table.joint_id, 0U);
    kernel.steps.clear();
    leave("b");
    EXPECT_EQ(kernel.steps, (std::vector<std::string>{"lock", "unlock"})) << "it had left already";
    leave("c");
    EXPECT_EQ(number("a"), std::nullopt) << "one set alone";
    EXPECT_EQ(kernel.running.table.joint_id, 0U);
}

// The joint filter does not know the key that comes, so the set is asked by itself.
TEST_F(Rejoin, ASetWhoseKeysChangeLeavesTheJointFilter) {
    const auto insert = [&](const char* address) {
        KeySet keys(SIEVE_FIELD_SRC);
        keys.add(*parse_key(address, SIEVE_FIELD_SRC));
        const auto done = change_keys(kernel, {.interface = "eth0"}, "b", Members(std::move(keys), {}),
                                      {.change = KeyChange::insert}, {});
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(done->report.done, 1U);
    };
    ASSERT_EQ(number("b"), 1U);
    insert("192.0.2.9");
    EXPECT_EQ(number("a"), 0U);
    EXPECT_EQ(number("b"), std::nullopt);
    EXPECT_EQ(number("c"), 2U);
    kernel.steps.clear();
    EXPECT_EQ(refused({"a", "b", "c"}).kind, ErrorKind::bad_input) << "the list lacks the key";
    files.feed("b", {"192.0.2.2", "192.0.2.3", "192.0.2.9"});
    kernel.steps.clear();
    kernel.once("test joint", [&] { insert("192.0.2.10"); });
    const auto overrun = run({"a", "b", "c"});
    ASSERT_FALSE(overrun);
    EXPECT_EQ(overrun.error().kind, ErrorKind::changed_meanwhile);
    files.feed("b", {"192.0.2.2", "192.0.2.3", "192.0.2.9", "192.0.2.10"});
    ASSERT_TRUE(rejoin_all());
    EXPECT_EQ(number("b"), 1U);
}

// The table that comes back has the same filter, which gets keys meanwhile.
TEST_F(Rejoin, ASetWhoseKeysChangeLeavesTheTableThatComesBack) {
    const auto done =
        swap(kernel, {.interface = "eth0"}, feed("b", {"192.0.2.5"}), {}, {.confirm_within = 60s});
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_TRUE(kernel.running.table.probation);
    KeySet keys(SIEVE_FIELD_SRC);
    keys.add(*parse_key("192.0.2.9", SIEVE_FIELD_SRC));
    const auto changed = insert(kernel, {.interface = "eth0"}, "a", keys, {});
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_EQ(number("a"), std::nullopt);
    ASSERT_TRUE(end_probation(kernel, {.interface = "eth0"}, ProbationEnd::take_back, {}));
    EXPECT_EQ(number("a"), std::nullopt) << "the joint filter does not know the key";
    EXPECT_EQ(number("b"), 1U);
    EXPECT_EQ(number("c"), 2U);
}

// A joint filter knows no ends: it would go on matching the key for ever.
TEST_F(Rejoin, ASetWhoseKeysMayEndIsNotJoined) {
    KeySet keys(SIEVE_FIELD_SRC);
    keys.add(*parse_key("192.0.2.9", SIEVE_FIELD_SRC));
    const auto done = change_keys(kernel, {.interface = "eth0"}, "b", Members(std::move(keys), {}),
                                  {.change = KeyChange::insert, .lifetime = 1h}, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(number("b"), std::nullopt);
    EXPECT_EQ(unjoined(), 0U) << "the service would try it in every cycle";
    files.feed("b", {"192.0.2.2", "192.0.2.3", "192.0.2.9"});
    ASSERT_TRUE(rejoin_all());
    EXPECT_EQ(number("a"), 0U);
    EXPECT_EQ(number("b"), std::nullopt);
    EXPECT_EQ(number("c"), 1U);
    EXPECT_EQ(remarks, (std::vector<std::string>{"set b is not joined: its keys may end"}));
}

TEST_F(Rejoin, OneSetIsNotEnough) {
    const std::uint32_t before = kernel.running.table.joint_id;
    const auto done = run({"a"});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_FALSE(done->joined);
    EXPECT_FALSE(kernel.changed());
    EXPECT_EQ(kernel.running.table.joint_id, before);
    EXPECT_EQ(remarks,
              (std::vector<std::string>{"nothing is joined: that takes two sets of the same fields"}));
}

TEST_F(Rejoin, ASwapDuringTheBuildingIsNotOverrun) {
    kernel.once("test joint", [this] {
        FakeKernel& running = kernel;
        running.running.table.sets[1].map_id = 777;
        running.running.table.sets[1].joined.reset();
    });
    EXPECT_EQ(refused({"a", "b", "c"}).kind, ErrorKind::changed_meanwhile);
}

TEST_F(Rejoin, RefusesWhatCannotBeJoined) {
    files.feed("nope", {"192.0.2.1"});
    EXPECT_EQ(refused({"a", "nope"}).kind, ErrorKind::no_such_set);
    kernel.refuse("test joint", ErrorKind::bad_input);
    EXPECT_EQ(refused({"a", "b"}).kind, ErrorKind::bad_input);
    kernel.allow("test joint");
    kernel.running.table.probation = std::chrono::seconds(9);
    EXPECT_EQ(refused({"a", "b"}).kind, ErrorKind::unconfirmed);
    expect_error(read_set_list(Files::set("a", files.image("a.sieve", {"192.0.2.1"})), {}),
                 ErrorKind::invalid_request);
    const auto ranges = read_set_list(feed("r", {"192.0.2.0/24"}), {});
    ASSERT_FALSE(ranges);
    EXPECT_EQ(ranges.error().kind, ErrorKind::invalid_request);
}

// The filter's exceptions must be given with the list, or the joint filter would not keep the promise.
TEST_F(Rejoin, ExceptionsBelongToTheList) {
    SetSpec with = feed("b", {"192.0.2.2", "192.0.2.3", "192.0.2.9"});
    with.feed.except = files.feed("exceptions", {"192.0.2.9"});
    with.feed.build.kind.kind = SIEVE_KIND_XORSAT; // an exact filter has nothing to promise
    ASSERT_TRUE(swap(kernel, {.interface = "eth0"}, with, {}));
    kernel.steps.clear();
    files.feed("b", {"192.0.2.2", "192.0.2.3"});
    expect_error(refused({"a", "b"}), ErrorKind::bad_input);
    files.feed("b", {"192.0.2.2", "192.0.2.3", "192.0.2.9"});
    std::vector<SetList> all = lists({"a"});
    all.push_back(read_set_list(with, {}).value());
    EXPECT_EQ(all.back().keys.size(), 2U);
    // As many exceptions, but another one.
    std::vector<SetList> other = all;
    other.back().exceptions.front().key.word[1]++;
    expect_error(rejoin(kernel, {.interface = "eth0"}, other, {}), ErrorKind::bad_input);
    EXPECT_FALSE(kernel.changed());
    EXPECT_TRUE(rejoin(kernel, {.interface = "eth0"}, all, {}));
}

// The filter matches the list's new key by mistake, and a member of what is in force is missing: a joint
// filter of that list would miss it.
TEST_F(Rejoin, AFalsePositiveInPlaceOfAKeyIsRefused) {
    std::vector<std::string> members;
    for (int i = 0; i < 200; i++) members.push_back("203.0.113." + std::to_string(i));
    SetSpec loose = feed("b", members);
    loose.feed.build.bits_per_key = 6;
    ASSERT_TRUE(swap(kernel, {.interface = "eth0"}, loose, {}));
    kernel.steps.clear();
    const auto filter = kernel.open_filter(kernel.running.table.find("b")->map_id).value();
    const sieve_lookup& lookup = filter->lookup();
    std::string mistaken;
    for (int i = 0; mistaken.empty(); i++) {
        const std::string address = "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256);
        const sieve_key key = parse_key(address, SIEVE_FIELD_SRC).value();
        if (kind_of(lookup).holds(lookup, sieve_hash_key(&key, lookup.hash_key, lookup.fields),
                                  filter->lines().data()))
            mistaken = address;
    }
    std::vector<std::string> changed = members;
    changed[17] = mistaken;
    files.feed("b", changed);
    expect_error(refused({"a", "b"}), ErrorKind::bad_input);
    files.feed("b", members);
    EXPECT_TRUE(run({"a", "b"}));
}

// Somebody else may build the joint filter, and is not believed.
TEST_F(Rejoin, WhatSomebodyElseBuiltIsChecked) {
    const auto rejoin_with = [&](const BuildJoint& build) {
        return rejoin(kernel, {.interface = "eth0"}, {"a", "b"}, build, {});
    };
    KeySet mine(SIEVE_FIELD_SRC), other(SIEVE_FIELD_SRC);
    mine.add(*parse_key("192.0.2.1", SIEVE_FIELD_SRC));
    mine.add(*parse_key("192.0.2.2", SIEVE_FIELD_SRC));
    other.add(*parse_key("198.51.100.1", SIEVE_FIELD_SRC));
    other.add(*parse_key("198.51.100.2", SIEVE_FIELD_SRC));
    const auto missing = rejoin_with([&](const JointTask& task) {
        return build_joint(task, std::vector<const KeySet*>{&mine, &other}, {});
    });
    expect_error(missing, ErrorKind::bad_input);
    EXPECT_FALSE(kernel.changed());
    EXPECT_EQ(kernel.count("bring in joint of a b"), 0U);
}

TEST_F(Rejoin, OnlySetsWithAListCountAsUnjoined) {
    swap_in("a", {"192.0.2.1"});
    swap_in("b", {"192.0.2.2"});
    EXPECT_EQ(unjoined(), 3U) << "one joined set is none";
    const auto count = [&](const std::set<std::string>& names) {
        return count_unjoined(kernel, kernel.running.table,
                              [&](const std::string& set) { return names.contains(set); })
            .value();
    };
    EXPECT_EQ(count({"a", "b"}), 2U);
    EXPECT_EQ(count({"a"}), 0U);
    EXPECT_EQ(count({}), 0U);
}

} // namespace
} // namespace sieve::control
