// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/edit_table.hpp"

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;
using Where = Position::Where;

class EditTable : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};

    EditTable() {
        kernel.put("friends", SIEVE_ACTION_PASS, true);
        kernel.put("bad", SIEVE_ACTION_DROP);
        kernel.put("seen", SIEVE_ACTION_COUNT);
        kernel.running.table.unreadable = SIEVE_ACTION_DROP;
        for (std::uint32_t i = 0; i < 3; i++) kernel.running.table.sets[i].baseline.packets = 10 + i;
        kernel.running.table.sets[1].inserted_id = 700;
    }
    [[nodiscard]] std::vector<std::string> order() const {
        std::vector<std::string> names;
        for (const kernel::SetInForce& set : kernel.running.table.sets) names.push_back(set.name);
        return names;
    }
    [[nodiscard]] const kernel::SetInForce& set(const std::string& name) const {
        return *kernel.running.table.find(name);
    }
    static SetEdit action(sieve_action action, const std::string& target = {}) {
        return {.action = WantedAction{action, target}};
    }
    static SetEdit place(Where where, const std::string& other = {}) {
        return {.position = Position{where, other}};
    }
    // The maps and counters of every set but `changed` are those of `before`.
    void expect_the_rest(const kernel::TableInForce& before, const std::string& changed) const {
        for (const kernel::SetInForce& old : before.sets) {
            if (old.name == changed) continue;
            EXPECT_EQ(set(old.name).map_id, old.map_id) << old.name;
            EXPECT_EQ(set(old.name).exact_id, old.exact_id) << old.name;
            EXPECT_EQ(set(old.name).inserted_id, old.inserted_id) << old.name;
            EXPECT_EQ(set(old.name).action, old.action) << old.name;
            EXPECT_EQ(set(old.name).baseline.packets, old.baseline.packets) << old.name;
        }
        EXPECT_EQ(kernel.running.table.unreadable, before.unreadable);
    }
    template <class T>
    void refused(const Result<T>& result, ErrorKind kind) {
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().kind, kind) << result.error().message;
        EXPECT_FALSE(kernel.changed());
        EXPECT_EQ(*kernel.open_maps, 0);
    }
};

TEST_F(EditTable, AnotherActionKeepsEverythingButTheSetsCounters) {
    const kernel::TableInForce before = kernel.running.table;
    const auto done = edit_set(kernel, eth0, "bad", action(SIEVE_ACTION_COUNT), {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(done->table.changed);
    EXPECT_EQ(done->before, (SetAction{SIEVE_ACTION_DROP, 0}));
    EXPECT_EQ(done->now, (SetAction{SIEVE_ACTION_COUNT, 0}));
    EXPECT_EQ(kernel.steps, (std::vector<std::string>{"lock", "replace", "unlock"}));
    EXPECT_EQ(order(), (std::vector<std::string>{"friends", "bad", "seen"}));
    EXPECT_EQ(set("bad").action, SIEVE_ACTION_COUNT);
    EXPECT_EQ(set("bad").map_id, before.find("bad")->map_id);
    EXPECT_EQ(set("bad").inserted_id, 700U);
    EXPECT_EQ(set("bad").baseline.packets, 1'000'011U) << "the old action's matches are not this one's";
    expect_the_rest(before, "bad");
    SetEdit keeping = action(SIEVE_ACTION_DROP);
    keeping.keep_counters = true;
    ASSERT_TRUE(edit_set(kernel, eth0, "bad", keeping, {}));
    EXPECT_EQ(set("bad").action, SIEVE_ACTION_DROP);
    EXPECT_EQ(set("bad").baseline.packets, 1'000'011U);
}

TEST_F(EditTable, AnotherPlaceKeepsTheCountersToo) {
    const kernel::TableInForce before = kernel.running.table;
    const std::vector<std::pair<SetEdit, std::vector<std::string>>> cases = {
        {place(Where::first), {"seen", "friends", "bad"}},
        {place(Where::last), {"friends", "bad", "seen"}},
        {place(Where::before, "bad"), {"friends", "seen", "bad"}},
        {place(Where::after, "friends"), {"friends", "seen", "bad"}},
        {place(Where::before, "friends"), {"seen", "friends", "bad"}},
        {place(Where::after, "bad"), {"friends", "bad", "seen"}},
    };
    for (const auto& [edit, wanted] : cases) {
        const auto done = edit_set(kernel, eth0, "seen", edit, {});
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(order(), wanted);
        EXPECT_EQ(done->table.order, wanted);
        expect_the_rest(before, "");
    }
}

TEST_F(EditTable, ActionAndPlaceChangeInOneStep) {
    SetEdit both = action(SIEVE_ACTION_PASS);
    both.position = Position{Where::first, {}};
    ASSERT_TRUE(edit_set(kernel, eth0, "bad", both, {}));
    EXPECT_EQ(kernel.count("replace"), 1U);
    EXPECT_EQ(order(), (std::vector<std::string>{"bad", "friends", "seen"}));
    EXPECT_EQ(set("bad").action, SIEVE_ACTION_PASS);
}

TEST_F(EditTable, WhatIsSoAlreadyIsNotDoneAgain) {
    SetEdit same = action(SIEVE_ACTION_DROP);
    same.position = Position{Where::after, "friends"};
    const auto done = edit_set(kernel, eth0, "bad", same, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_FALSE(done->table.changed);
    EXPECT_FALSE(edit_default(kernel, eth0, SIEVE_ACTION_PASS, false, {})->table.changed);
    EXPECT_FALSE(kernel.changed());
}

// A burst belongs to a limit as much as its rate does.
TEST_F(EditTable, ALimitIsAnActionWithItsBurst) {
    const auto limit = [](std::uint32_t burst) {
        return SetEdit{.action = WantedAction{SIEVE_ACTION_LIMIT, {}, {.rate = 100, .burst = burst}}};
    };
    ASSERT_TRUE(edit_set(kernel, eth0, "bad", limit(100), {}));
    EXPECT_FALSE(edit_set(kernel, eth0, "bad", limit(100), {})->table.changed);
    const auto done = edit_set(kernel, eth0, "bad", limit(50), {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->before, (SetAction{SIEVE_ACTION_LIMIT, 100, 100}));
    EXPECT_EQ(done->now, (SetAction{SIEVE_ACTION_LIMIT, 100, 50}));
    // Another place changes neither.
    ASSERT_TRUE(edit_set(kernel, eth0, "bad", place(Where::first), {}));
    EXPECT_EQ(set("bad").target, 100U);
    EXPECT_EQ(set("bad").burst, 50U);
    kernel.steps.clear();
    refused(edit_default(kernel, eth0, SIEVE_ACTION_DROP, false, {}), ErrorKind::invalid_request);
}

TEST_F(EditTable, AConditionChangesFieldByField) {
    const kernel::TableInForce before = kernel.running.table;
    const auto change = [&](const char* dport, const char* proto) {
        SetEdit edit;
        const auto put = [&](sieve_part number, const char* text) {
            if (text == nullptr) return;
            const ConditionPart& part = condition_parts()[number];
            ASSERT_TRUE(set_condition(edit.condition.to, part, text));
            edit.condition.fields |= part.field;
        };
        put(SIEVE_PART_DPORT, dport);
        put(SIEVE_PART_PROTO, proto);
        return edit;
    };
    const auto done = edit_set(kernel, eth0, "bad", change("22,443", nullptr), {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(describe_action(done->now), "drop,dport=22,443");
    EXPECT_EQ(describe_condition(set("bad").condition), "dport=22,443");
    EXPECT_EQ(set("bad").map_id, before.find("bad")->map_id);
    EXPECT_EQ(set("bad").inserted_id, 700U);
    EXPECT_EQ(set("bad").baseline.packets, 1'000'011U) << "other packets match from now on";
    expect_the_rest(before, "bad");
    ASSERT_TRUE(edit_set(kernel, eth0, "bad", change(nullptr, "tcp"), {}));
    EXPECT_EQ(describe_condition(set("bad").condition), "dport=22,443,proto=tcp");
    // Another action, another place and another default leave it as it is.
    ASSERT_TRUE(edit_set(kernel, eth0, "bad", action(SIEVE_ACTION_COUNT), {}));
    ASSERT_TRUE(edit_set(kernel, eth0, "seen", place(Where::first), {}));
    ASSERT_TRUE(edit_default(kernel, eth0, SIEVE_ACTION_DROP, false, {}));
    EXPECT_EQ(describe_condition(set("bad").condition), "dport=22,443,proto=tcp");
    const auto same = edit_set(kernel, eth0, "bad", change("443,22", nullptr), {});
    ASSERT_TRUE(same);
    EXPECT_FALSE(same->table.changed);
    ASSERT_FALSE(edit_set(kernel, eth0, "bad", change(nullptr, "icmp"), {}));
    ASSERT_TRUE(edit_set(kernel, eth0, "bad", change("any", "any"), {}));
    EXPECT_TRUE(set("bad").condition == sieve_condition{});
}

TEST_F(EditTable, WhatMakesNoSense) {
    refused(edit_set(kernel, eth0, "bad", {}, {}), ErrorKind::invalid_request);
    refused(edit_set(kernel, eth0, "bad", place(Where::before, "bad"), {}), ErrorKind::invalid_request);
    refused(edit_set(kernel, eth0, "bad", place(Where::before, "nope"), {}), ErrorKind::no_such_set);
    refused(edit_set(kernel, eth0, "nope", action(SIEVE_ACTION_DROP), {}), ErrorKind::no_such_set);
    refused(edit_set(kernel, eth0, "bad", action(SIEVE_ACTION_REDIRECT_DEVICE, "eth0"), {}),
            ErrorKind::invalid_request);
    refused(edit_default(kernel, eth0, SIEVE_ACTION_COUNT, false, {}), ErrorKind::invalid_request);
    kernel.refuse("lock", ErrorKind::busy);
    refused(edit_set(kernel, eth0, "bad", action(SIEVE_ACTION_PASS), {}), ErrorKind::busy);
    kernel.allow("lock");
    kernel.refuse("replace");
    refused(edit_set(kernel, eth0, "bad", action(SIEVE_ACTION_PASS), {}), ErrorKind::kernel_refused);
    kernel.running = {};
    refused(edit_set(kernel, eth0, "bad", action(SIEVE_ACTION_PASS), {}), ErrorKind::not_attached);
    refused(edit_default(kernel, eth0, SIEVE_ACTION_DROP, false, {}), ErrorKind::not_attached);
}

TEST_F(EditTable, ARedirectionIsCheckedAndWarnedOf) {
    kernel.eth1.carrier = false;
    const auto done = edit_set(kernel, eth0, "bad", action(SIEVE_ACTION_REDIRECT_DEVICE, "eth1"), {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(set("bad").target, 8U);
    ASSERT_EQ(done->table.warnings.size(), 1U);
    EXPECT_EQ(done->table.warnings[0].kind, WarningKind::no_carrier);
}

// As `ip link` leaves the program, or a first load that nobody confirmed.
TEST_F(EditTable, TheFirstSetOfAProgramDropsWhatCannotBeRead) {
    kernel.running.table.sets.clear();
    kernel.running.table.default_action = SIEVE_ACTION_PASS;
    kernel.running.table.unreadable = SIEVE_ACTION_PASS;
    ASSERT_TRUE(add_set(kernel, eth0, Files::set("new", files.feed("new", {"192.0.2.1"})), {}, false, {}));
    EXPECT_EQ(kernel.running.table.unreadable, SIEVE_ACTION_DROP);
    kernel.running.table.unreadable = SIEVE_ACTION_PASS; // as somebody wants it
    ASSERT_TRUE(add_set(kernel, eth0, Files::set("more", files.feed("more", {"192.0.2.1"})), {}, false, {}));
    EXPECT_EQ(kernel.running.table.unreadable, SIEVE_ACTION_PASS);
}

TEST_F(EditTable, AddsASetAtItsPlace) {
    const kernel::TableInForce before = kernel.running.table;
    const auto done = add_set(kernel, eth0, Files::set("new", files.feed("new", {"192.0.2.1"})),
                              {Where::before, "bad"}, false, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(kernel.steps,
              (std::vector<std::string>{"trial", "bring in new", "test new", "lock", "replace", "unlock"}));
    EXPECT_EQ(order(), (std::vector<std::string>{"friends", "new", "bad", "seen"}));
    EXPECT_EQ(set("new").action, SIEVE_ACTION_DROP) << "the opposite of the default";
    EXPECT_EQ(set("new").map_id, done->set.maps.filter_id);
    expect_the_rest(before, "new");
    ASSERT_TRUE(add_set(kernel, eth0, Files::set("more", files.feed("more", {"192.0.2.1"})), {}, false, {}));
    EXPECT_EQ(order().back(), "more");
}

// The whole action counts, and so does the promise to take the change back.
TEST_F(EditTable, AddsALimitOnProbation) {
    SetSpec spec = Files::set("new", files.feed("new", {"192.0.2.1"}));
    spec.action = WantedAction{SIEVE_ACTION_LIMIT, {}, {.rate = 100, .burst = 40}};
    Safety safety;
    safety.confirm_within = std::chrono::seconds(60);
    const auto done = add_set(kernel, eth0, spec, {}, false, {}, safety);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(set("new").target, 100U);
    EXPECT_EQ(set("new").burst, 40U);
    EXPECT_EQ(kernel.running.table.probation, std::chrono::seconds(60));
}

TEST_F(EditTable, ASetThatCannotBeAddedIsNotBuilt) {
    const SetSpec spec = Files::set("new", files.feed("new", {"192.0.2.1"}));
    SetSpec taken = spec;
    taken.name = "bad";
    refused(add_set(kernel, eth0, taken, {}, false, {}), ErrorKind::invalid_request);
    refused(add_set(kernel, eth0, spec, {Where::after, "nope"}, false, {}), ErrorKind::no_such_set);
    EXPECT_EQ(kernel.count("trial"), 0U);
    kernel.refuse("test new", ErrorKind::bad_input);
    refused(add_set(kernel, eth0, spec, {}, false, {}), ErrorKind::bad_input);
    kernel.allow("test new");
    // Somebody else takes the name, or the set beside it, while the new one is built.
    kernel.once("lock", [this] { kernel.put("new"); });
    refused(add_set(kernel, eth0, spec, {}, false, {}), ErrorKind::invalid_request);
    for (int i = 0; kernel.running.table.sets.size() < SIEVE_MAX_SETS; i++)
        kernel.put("s" + std::to_string(i));
    SetSpec one_more = spec;
    one_more.name = "one-more";
    refused(add_set(kernel, eth0, one_more, {}, false, {}), ErrorKind::invalid_request);
}

TEST_F(EditTable, TheDefaultChangesAlone) {
    const kernel::TableInForce before = kernel.running.table;
    const auto done = edit_default(kernel, eth0, SIEVE_ACTION_DROP, false, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->before, SIEVE_ACTION_PASS);
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_DROP);
    expect_the_rest(before, "");
    ASSERT_TRUE(edit_default(kernel, eth0, SIEVE_ACTION_PASS, false, {})) << "said in so many words";
}

TEST_F(EditTable, NobodyIsShutOutWithoutForce) {
    ASSERT_TRUE(edit_default(kernel, eth0, SIEVE_ACTION_DROP, false, {}));
    kernel.steps.clear();
    refused(edit_set(kernel, eth0, "friends", action(SIEVE_ACTION_DROP), {}), ErrorKind::wants_force);
    SetEdit forced = action(SIEVE_ACTION_DROP);
    forced.force = true;
    ASSERT_TRUE(edit_set(kernel, eth0, "friends", forced, {}));
    ASSERT_TRUE(edit_default(kernel, eth0, SIEVE_ACTION_PASS, false, {}));
    kernel.steps.clear();
    refused(edit_default(kernel, eth0, SIEVE_ACTION_DROP, false, {}), ErrorKind::wants_force);
    EXPECT_TRUE(edit_default(kernel, eth0, SIEVE_ACTION_DROP, true, {}));
}

// The set tells which of several tables is meant; the default belongs to none of them.
TEST_F(EditTable, OfSeveralHooks) {
    kernel.at_tc[kernel::HookPoint::egress] = kernel.running;
    kernel.at_tc[kernel::HookPoint::egress].table.sets.erase(
        kernel.at_tc[kernel::HookPoint::egress].table.sets.begin() + 1);
    const auto done = edit_set(kernel, eth0, "bad", action(SIEVE_ACTION_PASS), {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->table.point, kernel::HookPoint::xdp);
    kernel.steps.clear();
    refused(edit_default(kernel, eth0, SIEVE_ACTION_DROP, false, {}), ErrorKind::several_hooks);
    refused(edit_set(kernel, eth0, "seen", action(SIEVE_ACTION_PASS), {}), ErrorKind::several_hooks);
    const HookName egress{.interface = "eth0", .point = kernel::HookPoint::egress};
    ASSERT_TRUE(edit_default(kernel, egress, SIEVE_ACTION_DROP, false, {}));
    EXPECT_EQ(kernel.at_tc[kernel::HookPoint::egress].table.default_action, SIEVE_ACTION_DROP);
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_PASS);
}

// A failure after the change is no refusal.
TEST_F(EditTable, SaysThatItIsDoneWhenWhatFollowsFails) {
    kernel.refuse("replace", ErrorKind::unfinished);
    EXPECT_EQ(edit_set(kernel, eth0, "bad", action(SIEVE_ACTION_PASS), {}).error().kind,
              ErrorKind::unfinished);
    EXPECT_EQ(set("bad").action, SIEVE_ACTION_PASS);
}

} // namespace
} // namespace sieve::control
