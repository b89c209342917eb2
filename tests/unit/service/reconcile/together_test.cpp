// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Sets of one manifest come into force together or not at all, whatever refuses one of them and whenever the
// next manifest comes.
#include "libsieve/service/reconcile/together.hpp"

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "libsieve/service/reconcile/cycle.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"
#include "unit/service/in_process.hpp"
#include "unit/service/lists.hpp"

namespace sieve::service {
namespace {

namespace fs = std::filesystem;
using test::FakeKernel;
using test::Files;

class SetsTogetherTest : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    test::FakeHost host;
    Configuration configuration;
    std::optional<StateDirectory> state;
    SandboxSettings sandbox = test::in_process();
    std::string link = files.path("state") + "/fleet/current";

    SetsTogetherTest() {
        configuration.state_directory = files.path("state");
        open();
        configuration.interfaces.push_back({.name = "eth0", .sets = {"a", "b"}});
        add_set("a", link + "/a");
        add_set("b", link + "/b");
        publish("one", {{"a", {"192.0.2.1"}}, {"b", {"192.0.2.2"}}});
        switch_to("one");
        EXPECT_TRUE(cycle());
    }
    void open() {
        state.reset();
        state = StateDirectory::open(files.path("state"), std::chrono::milliseconds(0), {}).value();
    }
    void add_set(const std::string& name, const std::string& path) {
        SetConfiguration set;
        set.name = name;
        set.sources = {FileSpec{path}};
        set.feed = Files::quick();
        configuration.sets.push_back(std::move(set));
    }
    using Lists = std::map<std::string, std::vector<std::string>>;
    void publish(const std::string& manifest, const Lists& lists) {
        const fs::path folder = files.path("state") + "/fleet/manifests/" + manifest;
        fs::create_directories(folder);
        for (const auto& [set, list] : lists) fs::rename(files.feed(manifest + set, list), folder / set);
    }
    void switch_to(const std::string& manifest) {
        fs::remove(link + ".new");
        fs::create_directory_symlink("manifests/" + manifest, link + ".new");
        fs::rename(link + ".new", link);
    }
    Result<CycleReport> cycle(CycleOptions options = {.on_failure = OnFailure::go_on}) {
        options.sandbox = sandbox;
        kernel.steps.clear();
        return run_cycle(kernel, configuration, *state, host, options, {});
    }
    CycleReport report(const CycleOptions& options = {.on_failure = OnFailure::go_on}) {
        auto done = cycle(options);
        if (!done) throw std::runtime_error(done.error().message);
        return std::move(*done);
    }
    // The name of the filter that a set has in force at the hook (name_images()).
    std::string in_force(const std::string& set, kernel::HookPoint point = kernel::HookPoint::xdp) {
        const kernel::SetInForce* found = kernel.at(point).table.find(set);
        const auto header = kernel.read_filter(found == nullptr ? 0 : found->map_id);
        for (const auto& [name, identity] : identities)
            if (header && identity == identity_text(header->file)) return name;
        return "unknown";
    }
    // Names the images in force after the list that they were made of.
    std::map<std::string, std::string> identities;
    void name_images(const std::string& list) {
        for (const char* set : {"a", "b"})
            identities[list + set] = state->read(set, [](const std::string&) {})->identity;
    }
    void is_still_one() {
        EXPECT_EQ(in_force("a"), "one a");
        EXPECT_EQ(in_force("b"), "one b");
        EXPECT_FALSE(kernel.changed());
    }
};

TEST_F(SetsTogetherTest, AreThoseWithASourceBehindTheLink) {
    add_set("c", files.feed("c.txt", {"192.0.2.9"}));
    add_set("d", link + "/d"); // not in this manifest
    add_set("e", files.path("state") + "/sets/../fleet/current/b");
    const SetsTogether together = SetsTogether::of(configuration);
    EXPECT_EQ(together.completed({"a"}), (std::set<std::string>{"a", "b", "e"}));
    EXPECT_EQ(together.completed({"c"}), (std::set<std::string>{"c"}));
    EXPECT_TRUE(together.completed({}).empty());
    EXPECT_TRUE(together.still());
    switch_to("one");
    EXPECT_FALSE(together.still()) << "another link of the same target";
    fs::remove(link);
    EXPECT_FALSE(SetsTogether::of(configuration).has("a"));
}

TEST_F(SetsTogetherTest, AGuardThatRefusesOneHoldsBackAll) {
    name_images("one ");
    host.addresses = {test::host_address("198.51.100.1")};
    publish("two", {{"a", {"192.0.2.3"}}, {"b", {"198.51.100.1"}}});
    switch_to("two");
    const CycleReport done = report();
    is_still_one();
    EXPECT_EQ(done.sets[0].outcome, SetOutcome::failed);
    expect_error(*done.sets[0].error, ErrorKind::bad_input);
    EXPECT_EQ(done.sets[1].outcome, SetOutcome::refused);
    EXPECT_EQ(done.sets[1].guard, Guard::protection);
    // A manifest that is right brings both in.
    publish("three", {{"a", {"192.0.2.3"}}, {"b", {"192.0.2.4"}}});
    switch_to("three");
    EXPECT_EQ(report().sets[0].outcome, SetOutcome::replaced);
    EXPECT_EQ(kernel.count("replace"), 1U);
}

// A fleet that goes back from a long list goes back to a short one.
TEST_F(SetsTogetherTest, AListThatTheFleetKnowsMayBeOfAnySize) {
    publish("long", {{"a", {"192.0.2.3"}}, {"b", test::addresses(1000)}});
    switch_to("long");
    ASSERT_EQ(report().sets[1].outcome, SetOutcome::replaced);
    const fs::path fleet = files.path("state") + "/fleet";
    publish("short", {{"a", {"192.0.2.3"}}});
    fs::create_directories(fleet / "blobs");
    fs::rename(files.feed("short", test::addresses(300)), fleet / "blobs/0123");
    fs::create_symlink("../../blobs/0123", fleet / "manifests/short/b");
    switch_to("short");
    EXPECT_EQ(report().sets[1].guard, Guard::shrink);
    fs::create_directories(fleet / "known");
    fs::create_symlink("in-force-before", fleet / "known/0123");
    EXPECT_EQ(report().sets[1].outcome, SetOutcome::replaced);
    // Its addresses are as protected as ever.
    publish("own", {{"a", {"192.0.2.3"}}});
    fs::rename(files.feed("own", {"192.0.2.7"}), fleet / "blobs/4567");
    fs::create_symlink("../../blobs/4567", fleet / "manifests/own/b");
    fs::create_symlink("in-force-before", fleet / "known/4567");
    host.addresses = {test::host_address("192.0.2.7")};
    switch_to("own");
    EXPECT_EQ(report().sets[1].guard, Guard::protection);
}

// The node leads the link back as soon as one list was refused, and tries again later.
TEST_F(SetsTogetherTest, WhatWasRefusedCanBeAcceptedUntilTheFleetWantsAnother) {
    publish("long", {{"a", {"192.0.2.3"}}, {"b", test::addresses(1000)}});
    publish("short", {{"a", {"192.0.2.4"}}, {"b", test::addresses(300)}});
    switch_to("long");
    ASSERT_EQ(report().sets[1].outcome, SetOutcome::replaced);
    switch_to("short");
    ASSERT_EQ(report().sets[1].guard, Guard::shrink);
    const std::string refused = files.path("state") + "/fleet/refused";
    fs::create_directory_symlink("manifests/short", refused);
    switch_to("long");
    ASSERT_EQ(report().sets[1].outcome, SetOutcome::unchanged);
    std::optional<RefusedList> list = state->refused("b");
    ASSERT_TRUE(list);
    list->accepted = true;
    ASSERT_TRUE(write_refusal(files.path("state"), "b", *list));
    ASSERT_EQ(report().sets[1].outcome, SetOutcome::unchanged);
    switch_to("short");
    const fs::path records = files.path("state") + "/together.json";
    fs::create_directories(records / "content");
    EXPECT_TRUE(report().unwritten);
    EXPECT_TRUE(state->refused("b")) << "no record has it yet";
    fs::remove_all(records);
    EXPECT_EQ(report().sets[1].outcome, SetOutcome::replaced);
    EXPECT_FALSE(state->refused("b")) << "once";
    // Another manifest is wanted.
    publish("shorter", {{"a", {"192.0.2.4"}}, {"b", test::addresses(100)}});
    switch_to("shorter");
    ASSERT_EQ(report().sets[1].guard, Guard::shrink);
    fs::remove(refused);
    switch_to("short");
    ASSERT_EQ(report().sets[1].outcome, SetOutcome::unchanged);
    EXPECT_FALSE(state->refused("b"));
}

// One of them may not come before a set that passes has its list.
TEST_F(SetsTogetherTest, OneThatWaitsForAFriendHoldsBackAll) {
    name_images("one ");
    add_set("c", link + "/c");
    add_set("friends", files.path("friends.txt"));
    configuration.sets.back().action = {.action = SIEVE_ACTION_PASS};
    configuration.interfaces[0].sets = {"a", "b", "friends", "c"};
    publish("two", {{"a", {"192.0.2.3"}}, {"b", {"192.0.2.4"}}, {"c", {"192.0.2.5"}}});
    switch_to("two");
    const CycleReport done = report();
    is_still_one();
    ASSERT_TRUE(done.sets[0].error);
    expect_error(*done.sets[0].error, ErrorKind::bad_input);
    files.feed("friends.txt", {"192.0.2.9"});
    EXPECT_EQ(report().sets[0].outcome, SetOutcome::replaced);
    EXPECT_EQ(kernel.running.table.sets.size(), 4U);
}

// A file of the list cannot be read.
TEST_F(SetsTogetherTest, AListThatFailsHoldsBackAll) {
    name_images("one ");
    publish("two", {{"a", {"192.0.2.3"}}, {"b", {"no address"}}});
    switch_to("two");
    EXPECT_EQ(report().sets[1].outcome, SetOutcome::failed);
    is_still_one();
    fs::remove(files.path("state") + "/fleet/manifests/two/b");
    fs::create_symlink("nothing", files.path("state") + "/fleet/manifests/two/b");
    EXPECT_EQ(report().sets[1].outcome, SetOutcome::failed);
    is_still_one();
}

TEST_F(SetsTogetherTest, AnImageThatFailsInTheKernelHoldsBackAll) {
    name_images("one ");
    publish("two", {{"a", {"192.0.2.3"}}, {"b", {"192.0.2.4"}}});
    switch_to("two");
    kernel.refuse("test b", ErrorKind::bad_input);
    const CycleReport done = report();
    is_still_one();
    EXPECT_EQ(done.sets[0].outcome, SetOutcome::failed);
    EXPECT_EQ(state->read("a", [](const std::string&) {})->identity, identities["one a"]);
}

// One of two hooks refuses: the other one keeps what it has, too.
TEST_F(SetsTogetherTest, AHookThatRefusesHoldsBackAllHooks) {
    configuration.interfaces[0].sets = {"a"};
    configuration.interfaces.push_back(
        {.name = "eth0", .hook = kernel::HookPoint::ingress, .sets = {"a", "b"}});
    report();
    name_images("one ");
    publish("two", {{"a", {"192.0.2.3"}}, {"b", {"192.0.2.4"}}});
    switch_to("two");
    kernel.refuse("test b", ErrorKind::bad_input); // which is at the second hook only
    report();
    EXPECT_EQ(in_force("a"), "one a");
    EXPECT_EQ(in_force("a", kernel::HookPoint::ingress), "one a");
    EXPECT_FALSE(kernel.changed());

    kernel.allow("test b");
    report();
    EXPECT_EQ(kernel.steps,
              (std::vector<std::string>{"trial", "bring in a", "test a", "trial", "bring in a", "bring in b",
                                        "test a", "test b", "lock", "replace", "replace", "unlock"}))
        << "no table is replaced before all have been tested, and none without the lock";
    name_images("two ");
    EXPECT_EQ(in_force("a"), "two a");
    EXPECT_EQ(in_force("a", kernel::HookPoint::ingress), "two a");
    EXPECT_EQ(in_force("b", kernel::HookPoint::ingress), "two b");
}

// What is not of the fleet goes on: a hook that has none of its sets.
TEST_F(SetsTogetherTest, OthersGoOn) {
    configuration.interfaces.push_back({.name = "eth0", .hook = kernel::HookPoint::ingress, .sets = {"c"}});
    add_set("c", files.feed("c.txt", {"192.0.2.9"}));
    report();
    name_images("one ");
    files.feed("c.txt", {"192.0.2.10"});
    publish("two", {{"a", {"192.0.2.3"}}, {"b", {"no address"}}});
    switch_to("two");
    EXPECT_EQ(report().sets[2].outcome, SetOutcome::replaced);
    EXPECT_EQ(in_force("a"), "one a");
    EXPECT_EQ(kernel.count("replace"), 1U);
}

// Nor does another set's trouble hold them back, at the same hook.
TEST_F(SetsTogetherTest, AnotherSetsTroubleHoldsNoneBack) {
    configuration.interfaces[0].sets = {"a", "c", "b"};
    add_set("c", files.feed("c.txt", {"192.0.2.9"}));
    report();
    name_images("one ");
    files.feed("c.txt", {"192.0.2.10"});
    publish("two", {{"a", {"192.0.2.3"}}, {"b", {"192.0.2.4"}}});
    switch_to("two");
    kernel.refuse("test c", ErrorKind::bad_input);
    const CycleReport done = report();
    EXPECT_EQ(done.sets[0].outcome, SetOutcome::replaced);
    EXPECT_EQ(done.sets[1].outcome, SetOutcome::replaced);
    EXPECT_EQ(done.sets[2].outcome, SetOutcome::failed);
    EXPECT_EQ(kernel.count("replace"), 1U) << "together";
    name_images("two ");
    EXPECT_EQ(in_force("a"), "two a");
    EXPECT_EQ(in_force("b"), "two b");
    // One of them that the hook refuses holds back the other one, and not that set.
    kernel.allow("test c");
    kernel.refuse("test b", ErrorKind::bad_input);
    publish("three", {{"a", {"192.0.2.5"}}, {"b", {"192.0.2.6"}}});
    switch_to("three");
    EXPECT_EQ(report().sets[2].outcome, SetOutcome::replaced);
    EXPECT_EQ(in_force("a"), "two a");
}

TEST_F(SetsTogetherTest, AKernelThatRefusesTheFirstTableKeepsAll) {
    name_images("one ");
    publish("two", {{"a", {"192.0.2.3"}}, {"b", {"192.0.2.4"}}});
    switch_to("two");
    kernel.refuse("replace");
    const CycleReport done = report();
    is_still_one();
    EXPECT_EQ(done.sets[0].outcome, SetOutcome::failed);
    kernel.allow("replace");
    EXPECT_EQ(report().sets[1].outcome, SetOutcome::replaced);
}

TEST_F(SetsTogetherTest, OneThatIsAskedHasAllAsked) {
    publish("two", {{"a", {"192.0.2.3"}}, {"b", {"192.0.2.4"}}});
    switch_to("two");
    const CycleReport done = report({.ask = Ask::some, .sets = {"b"}, .on_failure = OnFailure::go_on});
    EXPECT_EQ(done.sets[0].outcome, SetOutcome::replaced);
    EXPECT_EQ(done.sets[1].outcome, SetOutcome::replaced);
    EXPECT_EQ(kernel.count("replace"), 1U);
}

// A manifest comes while the lists of the one before are read, and then that one again.
TEST_F(SetsTogetherTest, ListsAreReadAsOfOneMoment) {
    publish("two", {{"a", {"192.0.2.3", "192.0.2.4"}}, {"b", {"192.0.2.5", "192.0.2.6"}}});
    publish("three", {{"a", {"192.0.2.7"}}, {"b", {"192.0.2.8"}}});
    switch_to("two");
    std::mutex mutex; // lists are read on several threads
    int works = 0;
    sandbox.run = [&](const ChildOrder& child) {
        const std::lock_guard lock(mutex);
        if (works++ == 0) switch_to("three");
        return test::work_in_process(child);
    };
    const CycleReport done = report();
    EXPECT_EQ(done.sets[0].last_good->entries, 1U);
    EXPECT_EQ(done.sets[1].last_good->entries, 1U);
    EXPECT_EQ(kernel.count("replace"), 1U);

    // The link moves all the time: nothing comes in.
    name_images("one ");
    sandbox.run = [&](const ChildOrder& child) {
        const std::lock_guard lock(mutex);
        switch_to(works++ % 2 == 0 ? "two" : "one");
        return test::work_in_process(child);
    };
    switch_to("two");
    EXPECT_EQ(report().sets[0].outcome, SetOutcome::failed);
    is_still_one();
}

// A process that dies while the records of several sets are written leaves all of them or none.
TEST_F(SetsTogetherTest, RecordsChangeTogether) {
    std::map<std::string, SetRecord> records;
    for (const char* set : {"a", "b"}) {
        records[set] = *state->read(set, [](const std::string&) {});
        records[set].entries = 77;
    }
    const std::string blocked = files.path("state") + "/sets/b/record.json";
    fs::remove(blocked);
    fs::create_directories(blocked + "/content");
    EXPECT_FALSE(state->commit(records)) << "the second record cannot be written";
    fs::remove_all(blocked);
    open();
    for (const char* set : {"a", "b"})
        EXPECT_EQ(state->read(set, [](const std::string&) {})->entries, 77U) << set;
    EXPECT_FALSE(fs::exists(files.path("state") + "/together.json"));
    // One whose files are gone, and one that is damaged, change nothing.
    records["a"].entries = 78;
    records["b"].identity = std::string(32, '0');
    EXPECT_TRUE(state->commit(records));
    EXPECT_EQ(state->read("a", [](const std::string&) {})->entries, 77U);
    fs::rename(files.feed("damaged", {"{\"a\":"}), files.path("state") + "/together.json");
    open();
    EXPECT_EQ(state->read("a", [](const std::string&) {})->entries, 77U);
}

} // namespace
} // namespace sieve::service
