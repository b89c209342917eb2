// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/reconcile/list_owner.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/address_key.hpp"
#include "libsieve/service/live/journal.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/sandbox/child_messages.hpp"
#include "libsieve/service/sources/origin.hpp"
#include "libsieve/service/state/ban_ledger.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"
#include "unit/service/in_process.hpp"
#include "unit/service/lists.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service {
namespace {

namespace fs = std::filesystem;
using test::FakeKernel;
using test::Files;

class CycleTest : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    test::FakeHost host;
    Configuration configuration;
    StateDirectory state =
        StateDirectory::open(files.path("state"), std::chrono::milliseconds(0), {}).value();
    std::vector<std::string> remarks;
    SandboxSettings sandbox = test::in_process();

    CycleTest() {
        configuration.interfaces.push_back({.name = "eth0", .sets = {"a", "b"}});
        add_set("a", {"192.0.2.1"});
        add_set("b", {"192.0.2.2", "192.0.2.3"});
    }

    void add_set(const std::string& name, const std::vector<std::string>& entries) {
        SetConfiguration set;
        set.name = name;
        set.sources = {FileSpec{files.feed(name + ".txt", entries)}};
        set.feed = Files::quick();
        configuration.sets.push_back(std::move(set));
    }
    Result<CycleReport> run(CycleOptions options = {}) {
        options.sandbox = sandbox;
        control::Observer observer;
        observer.remark = [this](const std::string& text) { remarks.push_back(text); };
        kernel.steps.clear();
        take_over_renamed(configuration, state, observer); // it may be another one
        return run_cycle(kernel, configuration, state, host, options, observer);
    }
    CycleReport done(const CycleOptions& options = {}) {
        auto report = run(options);
        if (!report) throw std::runtime_error(report.error().message);
        for (const HookReport& hook : report->hooks) EXPECT_FALSE(hook.error) << hook.error->message;
        return std::move(*report);
    }
    Error refused(const CycleOptions& options = {}) {
        const auto report = run(options);
        EXPECT_FALSE(report);
        EXPECT_FALSE(kernel.changed());
        return report ? Error{} : report.error();
    }
    // As a daemon does it: beside the cycles.
    CycleReport refresh(const std::set<std::string>& names) {
        CycleOptions options = remembering;
        options.ask = Ask::some;
        options.sets = names;
        for (SetSurvey& survey : refresh_sets(kernel, configuration, names, state, host, sandbox, {}))
            options.surveyed.emplace(survey.set->name, std::make_shared<SetSurvey>(std::move(survey)));
        return done(options);
    }
    // No hook can be read, and it is unknown which programs there are.
    void take_descriptors() {
        for (const char* const step : {"read hook", "find program"})
            kernel.before(step, [](const std::string&) { return kernel_refused("Too many open files"); });
    }
    void give_descriptors() {
        for (const char* const step : {"read hook", "find program"}) kernel.allow(step);
    }
    // As a daemon compares, without asking sources.
    const CycleOptions remembering{.ask = Ask::nothing, .on_failure = OnFailure::go_on};
    [[nodiscard]] std::vector<std::string> names_in_force() const {
        std::vector<std::string> names;
        for (const kernel::SetInForce& set : kernel.running.table.sets) names.push_back(set.name);
        return names;
    }
    std::uint64_t in_force_entries(const std::string& set) {
        return kernel.read_filter(map_of(set))->file.entries;
    }
    std::uint32_t map_of(const std::string& set) {
        const kernel::SetInForce* found = kernel.running.table.find(set);
        return found == nullptr ? 0 : found->map_id;
    }
    // Makes the set a filter with its keys behind it.
    static void verify(SetConfiguration& set) {
        set.feed.build.kind.kind = SIEVE_KIND_XORSAT;
        set.verify = true;
    }
    // Only these can be joined, or have something to verify.
    void make_filters() {
        for (SetConfiguration& set : configuration.sets) set.feed.build.kind.kind = SIEVE_KIND_XORSAT;
    }
};

// Whatever was taken back, the record says what is to be in force.
TEST_F(CycleTest, AListThatWasTakenBackComesAgain) {
    done();
    files.feed("b.txt", {"192.0.2.2", "192.0.2.3", "192.0.2.4"});
    EXPECT_EQ(done({.confirm_within = std::chrono::seconds(60)}).sets.at(1).last_good->entries, 3U);
    kernel.running.table = kernel.running.returning;
    std::filesystem::remove(files.path("b.txt"));
    const CycleReport report = done({.on_failure = OnFailure::go_on});
    EXPECT_TRUE(report.sets.at(1).error);
    EXPECT_EQ(in_force_entries("b"), 3U);
}

// A person has put another list in force.
TEST_F(CycleTest, AListOfAPersonIsToldAsTheOneInForce) {
    done();
    kernel.put_filter(
        map_of("b"),
        Image::load(std::filesystem::path(files.image("mine", {"192.0.2.7", "192.0.2.8", "192.0.2.9"})))
            .value());
    std::filesystem::remove(files.path("b.txt"));
    const CycleReport report = done({.on_failure = OnFailure::go_on});
    EXPECT_TRUE(report.sets.at(1).error);
    EXPECT_EQ(report.sets.at(1).last_good->entries, 3U);
    EXPECT_EQ(report.sets.at(0).last_good->entries, 1U);
    EXPECT_EQ(state.named("b")->entries, 2U);
}

TEST_F(CycleTest, TheFirstAttachesAndTheSecondChangesNothing) {
    const CycleReport first = done();
    EXPECT_TRUE(first.changed);
    EXPECT_EQ(kernel.count("attach"), 1U);
    ASSERT_EQ(first.sets.size(), 2U);
    EXPECT_EQ(first.sets[1].outcome, SetOutcome::replaced);
    EXPECT_EQ(first.sets[1].last_good->entries, 2U);
    EXPECT_EQ(state.hooks([](const std::string&) {}).value(),
              (std::vector<ManagedHook>{{"eth0", kernel::HookPoint::xdp, 41}}));

    const std::uint32_t a = map_of("a");
    const CycleReport second = done();
    EXPECT_FALSE(second.changed);
    EXPECT_TRUE(kernel.steps.empty());
    EXPECT_EQ(map_of("a"), a);
    EXPECT_EQ(second.sets[0].outcome, SetOutcome::unchanged);
    EXPECT_TRUE(remarks.empty());
}

// Whoever pauses an interface takes the program off under the lock, so whoever takes the lock later must
// look.
TEST_F(CycleTest, NoProgramComesWhereSomebodyPausedMeanwhile) {
    kernel.once("lock", [&] { ASSERT_TRUE(add_pause(files.path("state"), "eth0")); });
    expect_error(refused(), ErrorKind::changed_meanwhile);
    kernel.allow("lock");
    EXPECT_TRUE(end_pause(files.path("state"), "").value());
    EXPECT_TRUE(done().changed);
}

TEST_F(CycleTest, APauseTakesTheProgramOffAndListsGoOn) {
    done();
    ASSERT_TRUE(add_pause(files.path("state"), ""));
    files.feed("b.txt", {"192.0.2.2"});
    const CycleReport paused = done();
    ASSERT_EQ(paused.hooks.size(), 1U);
    EXPECT_TRUE(paused.hooks[0].plan.paused);
    EXPECT_EQ(kernel.count("detach"), 1U);
    EXPECT_EQ(paused.sets[1].outcome, SetOutcome::replaced);
    EXPECT_FALSE(done().changed);
    EXPECT_TRUE(kernel.steps.empty());
    EXPECT_TRUE(end_pause(files.path("state"), "").value());
    const CycleReport resumed = done({.ask = Ask::nothing});
    EXPECT_EQ(kernel.count("attach"), 1U);
    EXPECT_EQ(resumed.sets[1].last_good->entries, 1U);
}

// The command takes the program off while the cycle that its note led to waits for the lock.
TEST_F(CycleTest, AProgramThatAPauseTookOffMeanwhileIsNoError) {
    done();
    ASSERT_TRUE(add_pause(files.path("state"), ""));
    kernel.once("lock", [this] { kernel.running = {}; });
    const CycleReport paused = done();
    ASSERT_EQ(paused.hooks.size(), 1U);
    EXPECT_EQ(kernel.count("detach"), 0U);
    EXPECT_TRUE(state.hooks([](const std::string&) {}).value().empty());
}

TEST_F(CycleTest, AListThatChangesReplacesItsFilterOnly) {
    done();
    const std::uint32_t a = map_of("a");
    const std::uint32_t b = map_of("b");
    files.feed("b.txt", {"192.0.2.2"});
    const CycleReport report = done();
    EXPECT_TRUE(report.changed);
    EXPECT_EQ(kernel.steps,
              (std::vector<std::string>{"trial", "bring in b", "test b", "lock", "replace", "unlock"}));
    EXPECT_EQ(map_of("a"), a);
    EXPECT_NE(map_of("b"), b);
    EXPECT_EQ(report.sets[0].outcome, SetOutcome::unchanged);
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::replaced);
    EXPECT_EQ(report.sets[1].entries_before, 2U);
    EXPECT_FALSE(done().changed);
}

// With `join`, one lookup answers for the sets, and does so again after each change of a list.
TEST_F(CycleTest, SetsAreJoinedFromTheirLists) {
    make_filters();
    const auto joined = [&](const std::string& set) { return kernel.running.table.find(set)->joined; };
    done();
    EXPECT_EQ(kernel.running.table.joint_id, 0U);
    configuration.interfaces[0].join = true;
    const std::uint32_t a = map_of("a");
    EXPECT_TRUE(done().changed) << "nothing else has changed";
    EXPECT_EQ(kernel.steps,
              (std::vector<std::string>{"bring in joint of a b", "lock", "trial", "replace",
                                        "unlock"})); // the trial asks about the host's addresses
    EXPECT_EQ(joined("b"), 1U);
    EXPECT_EQ(map_of("a"), a);
    EXPECT_FALSE(done().changed);
    EXPECT_TRUE(kernel.steps.empty());

    files.feed("b.txt", {"192.0.2.7"});
    EXPECT_TRUE(done().changed);
    EXPECT_EQ(kernel.steps,
              (std::vector<std::string>{"trial", "bring in b", "test b", "lock", "replace", "unlock",
                                        "bring in joint of a b", "lock", "trial", "replace", "unlock"}));
    EXPECT_EQ(joined("b"), 1U);
    expect_says(remarks.back());

    // A failure leaves the new list in force.
    kernel.refuse("test joint", ErrorKind::bad_input);
    files.feed("b.txt", {"192.0.2.8"});
    const CycleReport report = done();
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::replaced);
    EXPECT_EQ(joined("b"), std::nullopt);
    expect_says(remarks.back());
    kernel.allow("test joint");
    EXPECT_TRUE(done().changed);
    EXPECT_EQ(joined("b"), 1U);
}

TEST_F(CycleTest, WhatCannotBeJoinedIsNotTriedInEachCycle) {
    make_filters();
    configuration.interfaces[0].join = true;
    verify(configuration.sets[1]);
    done();
    EXPECT_EQ(kernel.running.table.joint_id, 0U);
    EXPECT_FALSE(done().changed);
    EXPECT_TRUE(kernel.steps.empty());
}

// 256 exceptions at a rate of a few percent: unless the builder sees to it, the joint filter names the set
// for some of them in nearly every build.
TEST_F(CycleTest, ASetWithExceptionsIsJoinedAndNeverNamedForThem) {
    make_filters();
    const auto network = [](const std::string& begin) {
        std::vector<std::string> entries;
        for (int i = 0; i < 250; i++) entries.push_back(begin + std::to_string(i));
        return entries;
    };
    std::vector<std::string> entries = network("10.1.2.");
    configuration.interfaces[0].join = true;
    for (SetConfiguration& set : configuration.sets) set.feed.build.bits_per_key = 8;
    configuration.sets[1].feed.except = files.feed("exceptions.txt", {"198.51.100.0/24", "10.1.2.7"});
    for (int i = 0; i < 8; i++) {
        // The joint filter takes the lower of the sets' rates, so this list must not be a short one.
        files.feed("a.txt", network("10.3.4."));
        files.feed("b.txt", entries);
        done();
        ASSERT_EQ(kernel.running.table.find("b")->joined, 1U);
        const auto joint = kernel.open_joint(kernel.running.table.joint_id).value();
        const auto named = [&](const std::string& address) {
            return find_joint(joint->lookup(), joint->lines(), parse_key(address, SIEVE_FIELD_SRC).value());
        };
        EXPECT_EQ(named("10.1.2.8"), 1U);
        EXPECT_NE(named("10.1.2.7"), 1U); // by chance it may be taken for one of the other list
        for (int last = 0; last < 256; last++)
            ASSERT_NE(named("198.51.100." + std::to_string(last)), 1U) << last;
        entries.pop_back();
    }
}

// The joint filter is built by a child. Whatever becomes of the child, the sets are in force.
TEST_F(CycleTest, AJoiningChildThatEndsBadlyLeavesTheSetsToBeAskedOneByOne) {
    make_filters();
    configuration.interfaces[0].join = true;
    int joining = 0;
    const auto fails_with = [&](auto what) {
        sandbox.run = [&joining, what](const ChildOrder& order) -> Result<ChildEnd> {
            if (!std::holds_alternative<JoinOrder>(read_order(order.message)->order))
                return test::work_in_process(order);
            joining++;
            return what(order);
        };
        remarks.clear();
        const CycleReport report = done();
        EXPECT_EQ(kernel.running.table.sets.size(), 2U);
        EXPECT_EQ(kernel.running.table.joint_id, 0U);
        EXPECT_EQ(kernel.running.table.find("b")->joined, std::nullopt);
        ASSERT_FALSE(remarks.empty());
        expect_says(remarks.back());
    };
    fails_with([](const ChildOrder&) {
        ChildEnd end;
        end.way = ChildEnd::Way::signalled;
        end.number = SIGSEGV;
        end.at = "joining the sets";
        return end;
    });
    // It says that it is done, and has written nothing, or the filter of other lists.
    const auto reported = [] {
        ChildEnd end;
        end.report = write_report(WorkDone{});
        return end;
    };
    fails_with([&](const ChildOrder&) { return reported(); });
    fails_with([&](const ChildOrder& order) {
        KeySet a(SIEVE_FIELD_SRC), b(SIEVE_FIELD_SRC);
        a.add(parse_key("198.51.100.1", SIEVE_FIELD_SRC).value());
        b.add(parse_key("198.51.100.2", SIEVE_FIELD_SRC).value());
        b.add(parse_key("198.51.100.3", SIEVE_FIELD_SRC).value());
        const auto joint = JointFilter::build(std::vector<const KeySet*>{&a, &b},
                                              {.fpr = 1e-9, .bits_per_key = {}, .seed = {}})
                               .value();
        EXPECT_TRUE(write_all(order.descriptors[1], {reinterpret_cast<const char*>(joint.lines().data()),
                                                     joint.lines().size_bytes()}));
        return reported();
    });
    EXPECT_EQ(joining, 3) << "each cycle tries again";
    sandbox = test::in_process();
    EXPECT_TRUE(done().changed);
    EXPECT_EQ(kernel.running.table.find("b")->joined, 1U);
}

// A list that is not the filter's any more, on disk under the filter's name.
TEST_F(CycleTest, AListThatWasAlteredOnDiskIsNotJoined) {
    make_filters();
    done();
    const std::string list = state.list_path("b", state.read("b", [](const std::string&) {})->identity);
    std::fstream file(list, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x77');
    file.close();
    configuration.interfaces[0].join = true;
    EXPECT_FALSE(done().changed);
    EXPECT_EQ(kernel.running.table.joint_id, 0U);
    expect_says(remarks.back());
}

TEST_F(CycleTest, AFailureChangesNothing) {
    done();
    files.feed("a.txt", {"192.0.2.9"});
    files.feed("b.txt", {"nonsense"});
    expect_error(refused(), ErrorKind::bad_input);
    EXPECT_TRUE(kernel.steps.empty());
    files.feed("b.txt", {"192.0.2.2", "192.0.2.3"});
    EXPECT_EQ(done().sets[0].outcome, SetOutcome::replaced); // a has waited
}

// As `apply` promises. A daemon has what the other hook can have.
TEST_F(CycleTest, AHookThatRefusesLeavesTheOthersAsTheyAre) {
    configuration.interfaces[0].sets = {"a"};
    configuration.interfaces.push_back({.name = "eth0", .hook = kernel::HookPoint::ingress, .sets = {"b"}});
    kernel.refuse("test b", ErrorKind::bad_input);
    expect_error(refused(), ErrorKind::bad_input);
    EXPECT_FALSE(state.named("a"));
    EXPECT_TRUE(std::filesystem::is_empty(files.path("state") + "/sets/a")) << "nothing stays staged";
    ASSERT_TRUE(run({.on_failure = OnFailure::go_on}));
    EXPECT_EQ(kernel.count("attach"), 1U);
    kernel.allow("test b");
    EXPECT_TRUE(done().changed);
    EXPECT_TRUE(state.named("b"));
}

TEST_F(CycleTest, AFailingSetNeedNotStopTheOthers) {
    done();
    const std::uint32_t b = map_of("b");
    files.feed("a.txt", {"192.0.2.9"});
    files.feed("b.txt", {"nonsense"});
    const CycleReport report = done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(report.sets[0].outcome, SetOutcome::replaced);
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::failed);
    ASSERT_TRUE(report.sets[1].error);
    EXPECT_TRUE(report.sets[1].last_good);
    EXPECT_EQ(map_of("b"), b);
}

TEST_F(CycleTest, AGuardRefuses) {
    host.addresses = {test::host_address("192.0.2.254")};
    done();
    files.feed("b.txt", {"192.0.2.254"});
    expect_error(refused(), ErrorKind::bad_input);
    const CycleReport report = done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::refused);
    EXPECT_EQ(report.sets[1].guard, Guard::protection);
    EXPECT_FALSE(report.changed);
}

// The last entry of a list is lifted.
TEST_F(CycleTest, AnEmptyListIsInForceWhereItMayBe) {
    std::ofstream(files.path("b.txt")) << "# none\n";
    expect_error(refused(), ErrorKind::bad_input);
    configuration.sets[1].empty = true;
    for (const bool verified : {false, true}) {
        if (verified) verify(configuration.sets[1]);
        for (const char* none : {"", "# none\n", "\n"}) {
            files.feed("b.txt", {"192.0.2.2", "192.0.2.3"});
            done();
            std::ofstream(files.path("b.txt")) << none;
            const CycleReport emptied = done();
            EXPECT_EQ(emptied.sets[1].outcome, SetOutcome::replaced);
            EXPECT_EQ(emptied.sets[1].last_good->entries, 0U);
            const auto filter = kernel.read_filter(map_of("b"));
            ASSERT_TRUE(filter);
            const auto image = Image::load(
                std::filesystem::path(state.image_path("b", emptied.sets[1].last_good->identity)));
            ASSERT_TRUE(image) << image.error().message;
            EXPECT_EQ(identity_text(filter->file), emptied.sets[1].last_good->identity);
            for (const char* address : {"192.0.2.1", "192.0.2.2", "192.0.2.3", "0.0.0.0", "::"})
                EXPECT_FALSE(image->contains(parse_key(address, SIEVE_FIELD_SRC).value())) << address;
            EXPECT_FALSE(image->contains(key_of_address(live::placeholder.address, SIEVE_FIELD_SRC)))
                << "who knows the address that it holds could forge it";
            EXPECT_FALSE(done().changed) << "it is in force already";
        }
    }
    // After a reboot, too; and with the folder that has no file.
    kernel.running = {};
    done({.ask = Ask::nothing});
    EXPECT_EQ(kernel.running.table.sets.size(), 2U);
    std::filesystem::create_directory(files.path("folder"));
    configuration.sets[1].sources = {FolderSpec{files.path("folder")}};
    EXPECT_FALSE(done().sets[1].error);
    EXPECT_FALSE(done().changed);
    std::ofstream(files.path("folder/one.txt")) << "192.0.2.9\n";
    EXPECT_EQ(done().sets[1].last_good->entries, 1U);
    // A list of many is not emptied by an accident.
    std::ofstream many(files.path("folder/one.txt"));
    for (int i = 0; i < 200; i++) many << "192.0.2." << i << "\n";
    many.close();
    done();
    std::ofstream(files.path("folder/one.txt")) << "";
    const auto report = run({.on_failure = OnFailure::go_on});
    EXPECT_EQ(report->sets[1].guard, Guard::shrink);
}

// What takes long is done beside the cycle, which then only takes what is ready.
TEST_F(CycleTest, ACycleTakesWhatWasBuiltBesideIt) {
    done();
    const auto before = state.read("b", [](const std::string&) {});
    files.feed("b.txt", {"192.0.2.8"});
    kernel.steps.clear();
    const auto refreshed = [&] {
        CycleOptions options{.ask = Ask::nothing, .on_failure = OnFailure::go_on};
        for (SetSurvey& one : refresh_sets(kernel, configuration, {"b"}, state, host, sandbox, {}))
            options.surveyed.emplace(one.set->name, std::make_shared<SetSurvey>(std::move(one)));
        return options;
    };
    const CycleOptions ready = refreshed();
    ASSERT_EQ(ready.surveyed.size(), 1U);
    ASSERT_TRUE(ready.surveyed.at("b")->staged);
    EXPECT_TRUE(kernel.steps.empty());
    EXPECT_EQ(state.read("b", [](const std::string&) {})->identity, before->identity);
    // Other cycles do not touch it.
    done({.ask = Ask::nothing});
    sandbox.run = [](const ChildOrder&) -> Result<ChildEnd> {
        throw std::runtime_error("a child in the cycle");
    };
    const CycleReport taken = done(ready);
    EXPECT_EQ(taken.sets[1].outcome, SetOutcome::replaced);
    EXPECT_EQ(taken.sets[1].last_good->entries, 1U);
    EXPECT_EQ(kernel.count("bring in b"), 1U);
    // What fails there fails in the cycle's report.
    sandbox = test::in_process();
    files.feed("b.txt", {"nonsense"});
    CycleReport failed = run(refreshed()).value();
    EXPECT_EQ(failed.sets[1].outcome, SetOutcome::failed);
    files.feed("b.txt", {"192.0.2.9"});
    sandbox.run = [](const ChildOrder& order) -> Result<ChildEnd> {
        if (std::holds_alternative<BuildOrder>(read_order(order.message)->order))
            return bad_input("no memory");
        return test::work_in_process(order);
    };
    failed = run(refreshed()).value();
    EXPECT_EQ(failed.sets[1].outcome, SetOutcome::failed);
    expect_error(*failed.sets[1].error, ErrorKind::bad_input);
    EXPECT_EQ(failed.sets[1].last_good->entries, 1U);
}

// A guard is answered by a person, for one list, once.
class AcceptTest : public CycleTest {
  protected:
    AcceptTest() {
        entries(1000);
        done();
    }
    void entries(int count) { files.feed("b.txt", test::addresses(count)); }
    void accept() {
        auto list = read_refusal(files.path("state"), "b");
        ASSERT_TRUE(list) << "nothing was refused";
        list->accepted = true;
        ASSERT_TRUE(write_refusal(files.path("state"), "b", *list));
    }
    SetReport cycle() { return run({.on_failure = OnFailure::go_on}).value().sets.at(1); }
    [[nodiscard]] bool is_noted() { return std::filesystem::exists(files.path("state/b.refused")); }
};

TEST_F(AcceptTest, TheRefusedListIsTakenOnce) {
    entries(100);
    const Error error = refused();
    expect_error(error, ErrorKind::bad_input);
    const auto noted = state.refused("b");
    ASSERT_TRUE(noted);
    EXPECT_EQ(noted->guard, "shrink");
    EXPECT_EQ(noted->entries, 100U);
    EXPECT_EQ(noted->entries_before, 1000U);
    EXPECT_EQ(noted->addresses[SIEVE_FAMILY_V4], 100);
    EXPECT_EQ(noted->addresses_before[SIEVE_FAMILY_V4], 1000);
    EXPECT_FALSE(noted->accepted);
    EXPECT_EQ(cycle().accept, "xdp-sieve accept b");
    accept();
    EXPECT_TRUE(state.accepted().contains("b"));
    const CycleReport taken = done();
    EXPECT_EQ(taken.sets[1].outcome, SetOutcome::replaced);
    EXPECT_EQ(taken.sets[1].last_good->entries, 100U);
    EXPECT_FALSE(is_noted()) << "it is spent";
    EXPECT_FALSE(done().changed);
    // As long as that list is in force, it is not asked about again. Any other is.
    configuration.sets[1].guards.most_ipv4 = 1e-9;
    EXPECT_EQ(cycle().outcome, SetOutcome::replaced);
    entries(99);
    EXPECT_EQ(cycle().outcome, SetOutcome::refused);
    entries(100);
    EXPECT_EQ(cycle().outcome, SetOutcome::unchanged);
    EXPECT_FALSE(is_noted()) << "the refused list is gone";
}

TEST_F(AcceptTest, NoOtherListIsTaken) {
    entries(100);
    EXPECT_EQ(cycle().outcome, SetOutcome::refused);
    accept();
    entries(101);
    EXPECT_EQ(cycle().outcome, SetOutcome::refused);
    EXPECT_EQ(cycle().outcome, SetOutcome::refused);
    entries(100);
    EXPECT_EQ(cycle().outcome, SetOutcome::refused) << "the answer was void as soon as another list came";
    EXPECT_EQ(cycle().outcome, SetOutcome::refused);
    accept();
    // Nor one of the same digest that covers more.
    auto list = read_refusal(files.path("state"), "b");
    list->addresses[SIEVE_FAMILY_V4] = 200;
    ASSERT_TRUE(write_refusal(files.path("state"), "b", *list));
    EXPECT_EQ(cycle().outcome, SetOutcome::refused);
    accept();
    EXPECT_EQ(cycle().outcome, SetOutcome::replaced);
}

TEST_F(AcceptTest, EveryGuardIsAnsweredButThatOfOwnAddresses) {
    std::ofstream(files.path("b.txt")) << "# none\n";
    EXPECT_EQ(cycle().guard, Guard::empty);
    accept();
    EXPECT_EQ(cycle().last_good->entries, 0U);
    entries(1000);
    ASSERT_EQ(cycle().outcome, SetOutcome::replaced);
    files.feed("b.txt", test::addresses(20000));
    configuration.sets[1].guards.most_ipv4 = 1e-6;
    EXPECT_EQ(cycle().guard, Guard::growth);
    accept();
    EXPECT_EQ(cycle().last_good->entries, 20000U);
    files.feed("b.txt", test::addresses(20001));
    EXPECT_EQ(cycle().guard, Guard::coverage);
    accept();
    host.addresses.push_back(test::host_address("11.0.0.1"));
    const SetReport own = cycle();
    EXPECT_EQ(own.guard, Guard::protection) << own.error->message;
    EXPECT_TRUE(own.accept.empty());
    EXPECT_EQ(own.error->message.find("xdp-sieve accept"), std::string::npos) << own.error->message;
    host.addresses.clear();
    EXPECT_EQ(cycle().last_good->entries, 20001U);
    expect_says(remarks.back());
    // An own address in another list makes the answer void.
    files.feed("b.txt", test::addresses(20002));
    EXPECT_EQ(cycle().guard, Guard::coverage);
    accept();
    host.addresses.push_back(test::host_address("11.0.0.1"));
    entries(15000);
    configuration.sets[1].guards.most_ipv4 = 0.25;
    EXPECT_EQ(cycle().guard, Guard::protection);
    EXPECT_FALSE(is_noted());
}

// Who dies between the answer and the cycle has lost nothing.
TEST_F(AcceptTest, TheAnswerOutlivesTheProcess) {
    entries(100);
    EXPECT_EQ(cycle().outcome, SetOutcome::refused);
    accept();
    const StateDirectory looked = StateDirectory::look(files.path("state"));
    EXPECT_TRUE(looked.refused("b")->accepted);
    EXPECT_EQ(cycle().outcome, SetOutcome::replaced);
    // It is about the list, whatever the set is called.
    entries(30);
    EXPECT_EQ(cycle().outcome, SetOutcome::refused);
    accept();
    configuration.sets[1].name = "c";
    configuration.interfaces[0].sets = {"a", "c"};
    EXPECT_EQ(cycle().outcome, SetOutcome::replaced);
    EXPECT_TRUE(state.accepted().empty());
    configuration.sets[1].name = "b";
    configuration.interfaces[0].sets = {"a", "b"};
    // The set leaves the configuration with what was refused of it.
    entries(1000);
    EXPECT_EQ(cycle().outcome, SetOutcome::replaced);
    entries(10);
    EXPECT_EQ(cycle().outcome, SetOutcome::refused);
    EXPECT_TRUE(is_noted());
    configuration.sets.pop_back();
    configuration.interfaces[0].sets = {"a"};
    done();
    EXPECT_FALSE(is_noted());
}

TEST_F(CycleTest, EveryEntryMayBeAnException) {
    SetConfiguration& set = configuration.sets[1];
    set.feed.except = files.feed("except.txt", {"192.0.2.2", "192.0.2.3"});
    expect_error(refused(), ErrorKind::bad_input);
    set.empty = true;
    EXPECT_EQ(done().sets[1].last_good->entries, 0U);
    // An emptied file of exceptions means that there are none.
    for (const char* none : {"", "# none\n"}) {
        files.feed("except.txt", {"192.0.2.2"});
        EXPECT_EQ(done().sets[1].last_good->entries, 1U);
        std::ofstream(files.path("except.txt")) << none;
        EXPECT_EQ(done().sets[1].last_good->entries, 2U);
    }
}

TEST_F(CycleTest, OnlyTheNamedSetsAreAsked) {
    done();
    files.feed("a.txt", {"192.0.2.9"});
    files.feed("b.txt", {"192.0.2.9"});
    const CycleReport report = done({.ask = Ask::some, .sets = {"b"}});
    EXPECT_EQ(report.sets[0].outcome, SetOutcome::unchanged);
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::replaced);
}

TEST_F(CycleTest, AfterARebootTheLastGoodImagesComeFirst) {
    done();
    kernel.running = {};
    std::filesystem::remove(files.path("a.txt"));
    std::filesystem::remove(files.path("b.txt"));
    const CycleReport report = done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_TRUE(report.changed);
    EXPECT_EQ(kernel.count("attach"), 1U);
    EXPECT_EQ(report.sets[0].outcome, SetOutcome::unchanged);
    EXPECT_EQ(kernel.running.table.sets.size(), 2U);
}

// Friends are not dropped because a list of foes is to take their place and is not there yet.
TEST_F(CycleTest, ANewActionAwaitsTheListOfTheNewSources) {
    SetConfiguration& set = configuration.sets[0];
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    done();
    const std::uint32_t friends = map_of("a");
    set.action = control::WantedAction{SIEVE_ACTION_DROP};
    set.sources = {FileSpec{files.path("foes.txt")}};
    configuration.sets[1].action = control::WantedAction{SIEVE_ACTION_COUNT};
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_PASS);
    EXPECT_EQ(kernel.running.table.find("b")->action, SIEVE_ACTION_COUNT);
    done({.on_failure = OnFailure::go_on}); // the file is not there
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_PASS);
    EXPECT_EQ(map_of("a"), friends);
    files.feed("foes.txt", {"192.0.2.66"});
    set.guards.protect = {"192.0.2.66"};
    const CycleReport refused = done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(refused.sets[0].outcome, SetOutcome::refused);
    EXPECT_TRUE(refused.sets[0].action_waits);
    EXPECT_FALSE(refused.sets[1].action_waits);
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_PASS);
    set.guards.protect.clear();
    EXPECT_FALSE(done({.on_failure = OnFailure::go_on}).sets[0].action_waits);
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_DROP);
    EXPECT_NE(map_of("a"), friends);
}

TEST_F(CycleTest, AListOfOtherSourcesComesNowhereWithANewAction) {
    SetConfiguration& set = configuration.sets[0];
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    done();
    set.sources = {FileSpec{files.path("foes.txt")}};
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    kernel.running = {};
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_NE(map_of("a"), 0U) << "the action is the same";
    set.action = control::WantedAction{SIEVE_ACTION_DROP};
    kernel.running = {};
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_EQ(map_of("a"), 0U);
    EXPECT_NE(map_of("b"), 0U);
    files.feed("foes.txt", {"192.0.2.66"});
    done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_DROP);
    kernel.running = {};
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_NE(map_of("a"), 0U);
}

TEST_F(CycleTest, ASetWithAnotherNameHasItsListAtOnce) {
    done();
    configuration.sets[0].name = "aa";
    configuration.interfaces[0].sets = {"aa", "b"};
    std::filesystem::remove(files.path("a.txt")); // nobody can ask for it
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_EQ(map_of("a"), 0U);
    EXPECT_NE(map_of("aa"), 0U);
    EXPECT_EQ(kernel.count("replace"), 1U);
    // Other sources are another set.
    configuration.sets[0].name = "ab";
    configuration.sets[0].sources = {FileSpec{files.path("other.txt")}};
    configuration.interfaces[0].sets = {"ab", "b"};
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_EQ(map_of("ab"), 0U);
}

TEST_F(CycleTest, ListsFollowNamesThatMoveOn) {
    const CycleReport first = done();
    const std::string a = first.sets[0].last_good->identity;
    const std::string b = first.sets[1].last_good->identity;
    const auto in_force = [&](const std::string& set) {
        return identity_text(kernel.open_filter(map_of(set)).value()->file());
    };
    for (const char* list : {"a.txt", "b.txt"}) std::filesystem::remove(files.path(list)); // nobody can ask
    // They exchange their names.
    std::swap(configuration.sets[0].sources, configuration.sets[1].sources);
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_EQ(in_force("a"), b);
    EXPECT_EQ(in_force("b"), a);
    // One takes the name of the other, which takes another.
    configuration.sets[0].name = "c";
    std::swap(configuration.sets[0], configuration.sets[1]);
    std::swap(configuration.sets[0].sources, configuration.sets[1].sources);
    configuration.interfaces[0].sets = {"b", "c"};
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_EQ(in_force("b"), b);
    EXPECT_EQ(in_force("c"), a);
    EXPECT_EQ(map_of("a"), 0U);
    EXPECT_FALSE(done({.ask = Ask::nothing, .on_failure = OnFailure::go_on}).changed);
}

// The old friends have a set of their own now, behind the one that they were in.
TEST_F(CycleTest, ASetThatWaitsKeepsAListThatAnotherSetHasToo) {
    SetConfiguration& set = configuration.sets[0];
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    done();
    SetConfiguration friends = set;
    friends.name = "friends";
    set.action = control::WantedAction{SIEVE_ACTION_DROP};
    set.sources = {FileSpec{files.path("foes.txt")}};
    configuration.sets.push_back(std::move(friends));
    configuration.interfaces[0].sets = {"a", "friends", "b"};
    done({.on_failure = OnFailure::go_on}); // the file is not there
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_PASS);
    EXPECT_EQ(kernel.running.table.find("friends")->action, SIEVE_ACTION_PASS);
    files.feed("foes.txt", {"192.0.2.66"});
    done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_DROP);
}

// Such as by ports.
TEST_F(CycleTest, SetsThatOneWasSplitIntoHaveItsList) {
    const std::string identity = done().sets[0].last_good->identity;
    std::filesystem::remove(files.path("a.txt"));
    configuration.sets[0].name = "web";
    configuration.sets.push_back(configuration.sets[0]);
    configuration.sets.back().name = "x";
    std::swap(configuration.sets[0], configuration.sets[1]); // by name
    configuration.interfaces[0].sets = {"web", "b", "x"};
    const CycleReport report = done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_NE(map_of("web"), 0U);
    EXPECT_NE(map_of("x"), 0U);
    for (const char* set : {"web", "x"}) EXPECT_EQ(state.named(set)->identity, identity);
}

TEST_F(CycleTest, FriendsThatTakeThePlaceOfFoesAreAwaited) {
    SetConfiguration& set = configuration.sets[0];
    set.action = control::WantedAction{SIEVE_ACTION_DROP};
    configuration.interfaces[0].sets = {"a"};
    done();
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    set.sources = {FileSpec{files.path("friends.txt")}};
    configuration.interfaces[0].sets = {"a", "b"};
    configuration.sets[1].action = control::WantedAction{SIEVE_ACTION_DROP};
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    done({.on_failure = OnFailure::go_on}); // the file is not there
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_DROP);
    EXPECT_EQ(map_of("b"), 0U);
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_PASS);
    files.feed("friends.txt", {"192.0.2.66"});
    done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_PASS);
    EXPECT_NE(map_of("b"), 0U);
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_DROP);
}

// Without an action of its own, a set passes where the default drops.
TEST_F(CycleTest, ANewDefaultIsANewAction) {
    configuration.interfaces[0].sets = {"b", "a"};
    configuration.sets[1].action = control::WantedAction{SIEVE_ACTION_DROP};
    done();
    configuration.sets[0].sources = {FileSpec{files.path("friends.txt")}};
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    kernel.running = {};
    done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(map_of("a"), 0U);
    files.feed("friends.txt", {"192.0.2.66"});
    done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_PASS);
}

// One that leaves has friends on it.
TEST_F(CycleTest, ANewActionAwaitsAListWithoutASourceThatLeaves) {
    SetConfiguration& set = configuration.sets[0];
    const SourceSpec stays = set.sources[0];
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    set.sources.emplace_back(FileSpec{files.feed("more.txt", {"192.0.2.77"})});
    done();
    set.action = control::WantedAction{SIEVE_ACTION_DROP};
    set.sources = {stays, FileSpec{files.path("foes.txt")}};
    done({.on_failure = OnFailure::go_on}); // the file is not there
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_PASS);
    set.sources = {stays};
    done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_DROP);
}

// The list stays that of its sources.
TEST_F(CycleTest, ANewActionDoesNotAwaitAListWithOtherExceptions) {
    SetConfiguration& set = configuration.sets[0];
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    set.feed.except = files.feed("except.txt", {"192.0.2.2"});
    done();
    set.action = control::WantedAction{SIEVE_ACTION_DROP};
    set.feed.except.clear();
    EXPECT_FALSE(done({.ask = Ask::nothing, .on_failure = OnFailure::go_on}).sets[0].action_waits);
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_DROP);
}

// The set was one that changes in place until the configuration was changed.
TEST_F(CycleTest, AnImageWhoseListHasChangedSinceWaitsForTheList) {
    const CycleReport before = done();
    std::string path = state.list_path("a", before.sets[0].last_good->identity);
    path.replace(path.rfind("list"), 4, "journal");
    ASSERT_TRUE(live::Journal::create(path, {{{}, {{live::placeholder, 0, live::never}}}}));
    kernel.running = {};
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_EQ(map_of("a"), 0U);
    EXPECT_NE(map_of("b"), 0U);
    done({.on_failure = OnFailure::go_on});
    EXPECT_NE(map_of("a"), 0U);
}

// Addresses of which nothing is asked go to an exact kind: nothing is kept beside them, and that is no
// change.
TEST_F(CycleTest, AnExactSetHasNothingToVerify) {
    remarks.clear();
    configuration.sets[0].verify = true;
    const CycleReport report = done();
    EXPECT_FALSE(report.hooks.at(0).plan.sets.at(0).verified);
    EXPECT_EQ(kernel.running.table.find("a")->exact_id, 0U);
    const auto record = state.read("a", [](const std::string&) {});
    ASSERT_TRUE(record);
    EXPECT_FALSE(record->exact);
    const auto image = Image::load(std::filesystem::path(state.image_path("a", record->identity)));
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(image->lookup().kind, SIEVE_KIND_EXACT);
    EXPECT_NE(std::ranges::find(remarks, "set a: kind exact is exact, so its matches need no verification"),
              remarks.end());
    EXPECT_FALSE(done().changed);
    files.feed("a.txt", {"192.0.2.1", "192.0.2.7"});
    const CycleReport again = done();
    EXPECT_EQ(again.sets[0].outcome, SetOutcome::replaced);
    EXPECT_FALSE(again.hooks.at(0).plan.sets.at(0).other_verification());
    EXPECT_FALSE(done().changed);
    // As a filter, it has.
    verify(configuration.sets[0]);
    EXPECT_EQ(done().sets[0].outcome, SetOutcome::replaced);
    EXPECT_NE(kernel.running.table.find("a")->exact_id, 0U);
}

TEST_F(CycleTest, AVerifiedSetComesBackWithItsKeys) {
    verify(configuration.sets[0]);
    done();
    EXPECT_NE(kernel.running.table.find("a")->exact_id, 0U);
    kernel.running = {};
    std::filesystem::remove(files.path("a.txt"));
    done({.ask = Ask::nothing});
    EXPECT_NE(kernel.running.table.find("a")->exact_id, 0U);
}

// Verification was switched on, and the sources cannot be read: the last good image has no keys.
TEST_F(CycleTest, ASetIsInForceUnverifiedUntilItsListIsRead) {
    const auto verified = [&](const std::string& set) {
        return kernel.running.table.find(set)->exact_id != 0;
    };
    make_filters();
    done();
    for (SetConfiguration& set : configuration.sets) set.verify = true;
    std::filesystem::remove(files.path("a.txt"));
    EXPECT_EQ(done({.on_failure = OnFailure::go_on}).sets[1].outcome, SetOutcome::replaced);
    EXPECT_FALSE(verified("a"));
    EXPECT_TRUE(verified("b")) << "the other set waits for it";

    kernel.running = {};
    done({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    ASSERT_EQ(kernel.running.table.sets.size(), 2U) << "nothing is in force after a reboot";
    EXPECT_FALSE(verified("a"));
    EXPECT_TRUE(verified("b"));
    EXPECT_FALSE(done({.ask = Ask::nothing, .on_failure = OnFailure::go_on}).changed);

    files.feed("a.txt", {"192.0.2.1"});
    EXPECT_EQ(done().sets[0].outcome, SetOutcome::replaced);
    EXPECT_TRUE(verified("a"));
    EXPECT_TRUE(verified("b"));
}

TEST_F(CycleTest, AVerifiedSetWhoseKeysAreDamagedIsBuiltAnew) {
    verify(configuration.sets[0]);
    done();
    const std::string identity = state.read("a", [](const std::string&) {})->identity;
    const std::string path = state.exact_path("a", identity);
    std::ifstream before(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(before), {}};
    bytes.back() ^= 1; // in the last key
    test::replace_file(path, bytes);
    kernel.running = {};
    remarks.clear();
    const CycleReport report = done();
    EXPECT_EQ(report.sets[0].outcome, SetOutcome::replaced);
    EXPECT_NE(state.read("a", [](const std::string&) {})->identity, identity);
    EXPECT_NE(kernel.running.table.find("a")->exact_id, 0U);
    ASSERT_FALSE(remarks.empty());
    EXPECT_TRUE(remarks[0].starts_with(path)) << remarks[0];
}

// The disk may give other bytes without a change of the file's times, so what was whole is checked again.
TEST_F(CycleTest, DamagedKeysAreNotLoaded) {
    verify(configuration.sets[0]);
    done();
    const auto silent = [](const std::string&) {};
    const std::string identity = state.read("a", silent)->identity;
    EXPECT_EQ(state.exact_keys("a", identity).value().size(), 1U);
    const std::string path = state.exact_path("a", identity);
    {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(-1, std::ios::end);
        const int last = file.get();
        file.seekp(-1, std::ios::end);
        file.put(static_cast<char>(last ^ 1));
    }
    const auto keys = state.exact_keys("a", identity);
    ASSERT_FALSE(keys);
    EXPECT_TRUE(keys.error().message.starts_with(path)) << keys.error().message;
    EXPECT_FALSE(state.read("a", silent));
}

TEST_F(CycleTest, WhatRunsIsTakenOverAsItIs) {
    done();
    const std::uint32_t a = map_of("a");
    // A controller put a newer list in force and died before it wrote that down.
    kernel.put_filter(a, Image::load(files.image("newer", {"192.0.2.77"})).value());
    EXPECT_FALSE(done({.ask = Ask::nothing}).changed);
    EXPECT_EQ(map_of("a"), a);
    EXPECT_TRUE(done().changed); // the sources are the last word
}

TEST_F(CycleTest, ASetThatAnswersWrongInTheKernelIsNotKept) {
    done();
    const std::string before = state.read("b", [](const std::string&) {})->identity;
    files.feed("b.txt", {"192.0.2.7"});
    kernel.refuse("test b", ErrorKind::bad_input);
    expect_error(refused(), ErrorKind::bad_input);
    const auto report = run({.on_failure = OnFailure::go_on});
    ASSERT_TRUE(report);
    EXPECT_FALSE(report->changed);
    EXPECT_TRUE(report->hooks[0].error);
    EXPECT_EQ(report->sets[1].outcome, SetOutcome::failed);
    EXPECT_TRUE(report->sets[1].error);
    EXPECT_EQ(state.read("b", [](const std::string&) {})->identity, before);
    kernel.allow("test b");
    EXPECT_EQ(done().sets[1].outcome, SetOutcome::replaced);
}

TEST_F(CycleTest, AMissingInterfaceStopsAPersonButNotADaemon) {
    configuration.interfaces.push_back({.name = "eth7", .sets = {"a"}});
    expect_error(refused(), ErrorKind::kernel_refused);
    const CycleReport report = done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(report.missing, std::vector<std::string>{"eth7"});
    EXPECT_TRUE(report.changed);
}

TEST_F(CycleTest, ASetForNoInterfaceYetIsBuiltAndKept) {
    configuration.interfaces[0].name = "wg*";
    const CycleReport report = done();
    EXPECT_FALSE(report.changed);
    EXPECT_EQ(report.sets[0].outcome, SetOutcome::replaced);
    EXPECT_EQ(done().sets[0].outcome, SetOutcome::unchanged);
}

// The sets move to another hook, where one of them cannot be in force yet.
TEST_F(CycleTest, AHookKeepsItsProgramUntilAnotherHasItsSets) {
    const CycleReport before = done();
    configuration.interfaces[0] = {.name = "eth0", .hook = kernel::HookPoint::ingress, .sets = {"a", "b"}};
    std::filesystem::remove(files.path("b.txt"));
    std::filesystem::remove(state.image_path("b", before.sets[1].last_good->identity));
    const auto report = run({.on_failure = OnFailure::go_on});
    ASSERT_TRUE(report);
    EXPECT_TRUE(kernel.running.ours);
    EXPECT_TRUE(kernel.at_tc[kernel::HookPoint::ingress].ours);
    ASSERT_EQ(report->hooks.size(), 2U);
    ASSERT_TRUE(report->hooks[1].error);
    expect_error(*report->hooks[1].error, ErrorKind::bad_input);
    files.feed("b.txt", {"192.0.2.4"});
    done({.on_failure = OnFailure::go_on});
    EXPECT_FALSE(kernel.running.ours);
    EXPECT_TRUE(kernel.at_tc[kernel::HookPoint::ingress].ours);
}

// The list of one set is not there yet, and it has the sources of a set that goes with the former hook.
TEST_F(CycleTest, AHookKeepsASetUntilAnotherHasTheOneThatReplacesIt) {
    const CycleOptions as_daemon{.on_failure = OnFailure::go_on};
    done();
    configuration.interfaces[0] = {.name = "eth0", .hook = kernel::HookPoint::ingress, .sets = {"a", "c"}};
    configuration.sets[1].name = "c";
    configuration.sets[1].sources.emplace_back(FileSpec{files.path("late.txt")});
    for (int i = 0; i < 2; i++) { // the next cycle knows it, too
        ASSERT_TRUE(run(as_daemon));
        EXPECT_TRUE(kernel.at_tc[kernel::HookPoint::ingress].ours);
        EXPECT_TRUE(kernel.running.ours);
        EXPECT_NE(map_of("b"), 0U);
    }
    files.feed("late.txt", {"192.0.2.8"});
    done(as_daemon);
    EXPECT_FALSE(kernel.running.ours);
    EXPECT_EQ(kernel.at_tc[kernel::HookPoint::ingress].table.sets.size(), 2U);
}

// What it drops by default would pass until the new friends are there.
TEST_F(CycleTest, AHookKeepsItsProgramUntilAnotherHasItsDefault) {
    const CycleOptions as_daemon{.on_failure = OnFailure::go_on};
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    done();
    configuration.interfaces[0].hook = kernel::HookPoint::ingress;
    configuration.interfaces[0].sets = {"a", "b", "c"};
    add_set("c", {"192.0.2.8"});
    std::filesystem::remove(files.path("c.txt"));
    const auto report = run(as_daemon);
    ASSERT_TRUE(report);
    EXPECT_EQ(kernel.at_tc[kernel::HookPoint::ingress].table.default_action, SIEVE_ACTION_PASS);
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_DROP);
    ASSERT_TRUE(report->hooks[1].error);
    expect_error(*report->hooks[1].error, ErrorKind::bad_input);
    files.feed("c.txt", {"192.0.2.8"});
    done(as_daemon);
    EXPECT_EQ(kernel.at_tc[kernel::HookPoint::ingress].table.default_action, SIEVE_ACTION_DROP);
    EXPECT_FALSE(kernel.running.ours);
}

// A set moves to another hook of its interface, and the one where it was has others besides.
class MovedSetTest : public CycleTest {
  protected:
    const CycleOptions as_daemon{.on_failure = OnFailure::go_on};

    MovedSetTest() { done(); }
    // Each moment, some hook has each of the sets.
    void watch() {
        for (const char* const step : {"attach", "replace", "detach"})
            kernel.before(step, [this](const std::string&) {
                expect_all();
                return Status();
            });
    }
    void expect_all() {
        for (const char* const set : {"a", "b"})
            EXPECT_TRUE(kernel.any_hook([&](const FakeKernel::HookContent& hook) {
                return hook.ours && hook.table.find(set) != nullptr;
            })) << set;
    }
    void configure(const std::vector<std::string>& at_xdp, const std::vector<std::string>& at_ingress) {
        configuration.interfaces = {{.name = "eth0", .sets = at_xdp},
                                    {.name = "eth0", .hook = kernel::HookPoint::ingress, .sets = at_ingress}};
    }
    [[nodiscard]] std::vector<std::string> at_ingress() {
        std::vector<std::string> names;
        for (const kernel::SetInForce& set : kernel.at_tc[kernel::HookPoint::ingress].table.sets)
            names.push_back(set.name);
        return names;
    }
    void moves_once_ingress_can_be_had(std::uint32_t default_until_then = SIEVE_ACTION_PASS) {
        kernel.refuse("attach");
        ASSERT_TRUE(run(as_daemon));
        EXPECT_EQ(names_in_force(), (Names{"a", "b"}));
        EXPECT_EQ(kernel.running.table.default_action, default_until_then);
        kernel.allow("attach");
        done(as_daemon);
        EXPECT_EQ(names_in_force(), Names{"a"});
    }
    using Names = std::vector<std::string>;
};

TEST_F(MovedSetTest, IsInForceAllTheWhile) {
    watch();
    for (const CycleOptions& options : {as_daemon, CycleOptions()}) {
        configure({"a"}, {"b"});
        const CycleReport report = done(options);
        EXPECT_EQ(names_in_force(), Names{"a"});
        EXPECT_EQ(at_ingress(), Names{"b"});
        ASSERT_EQ(report.hooks.size(), 2U);
        EXPECT_EQ(report.hooks[0].plan.names(), Names{"a"});
        EXPECT_EQ(done(options).changed, false);
        // They change places, and one has another list.
        configure({"b"}, {"a"});
        files.feed("b.txt", {"192.0.2.2", "192.0.2.9"});
        done(options);
        EXPECT_EQ(names_in_force(), Names{"b"});
        EXPECT_EQ(at_ingress(), Names{"a"});
        configure({"a", "b"}, {"a"});
        done(options);
        EXPECT_EQ(names_in_force(), (Names{"a", "b"}));
    }
    expect_all();
}

TEST_F(MovedSetTest, StaysUntilTheOtherHookTakesIt) {
    configure({"a"}, {"friends", "b"});
    add_set("friends", {"192.0.2.8"});
    configuration.sets.back().action = control::WantedAction{SIEVE_ACTION_PASS};
    std::filesystem::remove(files.path("friends.txt"));
    for (int i = 0; i < 2; i++) {
        ASSERT_TRUE(run(as_daemon));
        EXPECT_EQ(names_in_force(), (Names{"a", "b"}));
    }
    files.feed("friends.txt", {"192.0.2.8"});
    moves_once_ingress_can_be_had();
    EXPECT_EQ(at_ingress(), (Names{"friends", "b"}));
}

TEST_F(MovedSetTest, IsAwaitedUnderAnotherName) {
    configure({"a"}, {"c"});
    configuration.sets[1].name = "c";
    moves_once_ingress_can_be_had();
    EXPECT_EQ(at_ingress(), Names{"c"});
}

TEST_F(MovedSetTest, KeepsTheDefaultThatMovesWithIt) {
    configuration.sets[1].action = control::WantedAction{SIEVE_ACTION_PASS};
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    configuration.sets[0].action = control::WantedAction{SIEVE_ACTION_DROP};
    done();
    configure({"a"}, {"b"});
    configuration.interfaces[1].default_action = SIEVE_ACTION_DROP;
    moves_once_ingress_can_be_had(SIEVE_ACTION_DROP);
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_PASS);
    EXPECT_EQ(kernel.at_tc[kernel::HookPoint::ingress].table.default_action, SIEVE_ACTION_DROP);
}

// Without what passes, it would drop everybody.
TEST_F(MovedSetTest, KeepsWhatPassesAsLongAsTheDefault) {
    configuration.sets[1].action = control::WantedAction{SIEVE_ACTION_PASS};
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    configuration.sets[0].action = control::WantedAction{SIEVE_ACTION_DROP};
    done();
    add_set("friends", {"192.0.2.8"});
    configuration.sets.back().action = control::WantedAction{SIEVE_ACTION_PASS};
    std::filesystem::remove(files.path("friends.txt"));
    configure({"a"}, {"b", "friends"});
    configuration.interfaces[1].default_action = SIEVE_ACTION_DROP;
    for (int i = 0; i < 2; i++) {
        ASSERT_TRUE(run(as_daemon));
        EXPECT_EQ(at_ingress(), Names{"b"});
        EXPECT_EQ(names_in_force(), (Names{"a", "b"}));
        EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_DROP);
    }
    files.feed("friends.txt", {"192.0.2.8"});
    done(as_daemon);
    EXPECT_EQ(names_in_force(), Names{"a"});
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_PASS);
}

// What is taken back at one hook must not be missing at the other then.
TEST_F(MovedSetTest, StaysWhereItWasDuringAProbation) {
    const CycleOptions on_probation{.confirm_within = std::chrono::seconds(60)};
    configure({"a"}, {"b"});
    done(on_probation);
    EXPECT_EQ(names_in_force(), (Names{"a", "b"}));
    EXPECT_EQ(at_ingress(), Names{"b"});
    kernel.at_tc[kernel::HookPoint::ingress] = {};
    configuration.interfaces = {{.name = "eth0", .hook = kernel::HookPoint::ingress, .sets = {"a", "b"}}};
    const CycleReport report = done(on_probation);
    EXPECT_EQ(at_ingress(), (Names{"a", "b"}));
    EXPECT_EQ(names_in_force(), (Names{"a", "b"}));
    EXPECT_EQ(remarks.size(), 2U);
    for (const std::string& remark : remarks) expect_says(remark);
    kernel.at_tc[kernel::HookPoint::ingress].table.probation = {};
    done();
    EXPECT_FALSE(kernel.running.ours);
}

// A set has another name, and cannot be in force under it yet: its target is not there, or it is behind a set
// that is to pass and has no list. What it takes under the former name is taken, wherever that is.
class RenamedSetTest : public CycleTest {
  protected:
    RenamedSetTest() {
        configuration.sets[1].action = {.action = SIEVE_ACTION_DROP};
        done();
        configuration.sets[1].name = "c";
        configuration.interfaces[0].sets = {"a", "c"};
    }
    void stays_until(const std::function<void()>& it_can_be_had, kernel::HookPoint point) {
        for (int i = 0; i < 3; i++) {
            if (i == 1) files.feed("b.txt", {"192.0.2.2", "192.0.2.7"}); // its list goes on
            ASSERT_TRUE(run({.on_failure = OnFailure::go_on}));
            EXPECT_NE(map_of("b"), 0U);
            EXPECT_EQ(state.named("c")->former, std::set<std::string>{"b"});
        }
        it_can_be_had();
        done({.on_failure = OnFailure::go_on});
        EXPECT_EQ(map_of("b"), 0U);
        EXPECT_NE(kernel.at(point).table.find("c"), nullptr);
        EXPECT_TRUE(state.named("c")->former.empty());
    }
};

TEST_F(RenamedSetTest, StaysUnderTheFormerNameWhileItIsHeldBack) {
    configuration.sets[1].action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, "eth9"};
    stays_until([this] { configuration.sets[1].action->target = "eth1"; }, kernel::HookPoint::xdp);
}

TEST_F(RenamedSetTest, StaysUnderTheFormerNameWhileItWaitsForFriends) {
    add_set("f", {"192.0.2.77"});
    configuration.sets[2].action = {.action = SIEVE_ACTION_PASS};
    std::filesystem::remove(files.path("f.txt"));
    configuration.interfaces[0].sets = {"a", "f", "c"};
    stays_until([this] { files.feed("f.txt", {"192.0.2.77"}); }, kernel::HookPoint::xdp);
}

TEST_F(RenamedSetTest, StaysOnTheFormerHookWhileItIsHeldBack) {
    configuration.interfaces[0].hook = kernel::HookPoint::ingress;
    configuration.sets[1].action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, "eth9"};
    stays_until([this] { configuration.sets[1].action->target = "eth1"; }, kernel::HookPoint::ingress);
}

// One dead source of three, on a fresh host.
TEST_F(CycleTest, ASetWithoutAListDoesNotKeepTheOthersOut) {
    add_set("c", {"192.0.2.4"});
    configuration.interfaces[0].sets = {"a", "c", "b"};
    std::filesystem::remove(files.path("c.txt"));
    const CycleOptions as_daemon{.on_failure = OnFailure::go_on};
    const CycleReport first = done(as_daemon);
    EXPECT_EQ(kernel.count("attach"), 1U);
    EXPECT_NE(map_of("a"), 0U);
    EXPECT_NE(map_of("b"), 0U);
    EXPECT_EQ(first.hooks[0].plan.waiting, (std::vector<WaitingSet>{{"c", ""}}));
    EXPECT_EQ(first.sets[2].outcome, SetOutcome::failed);
    // Each of the others goes on, and the missing one joins them.
    files.feed("b.txt", {"192.0.2.9"});
    EXPECT_EQ(done(as_daemon).sets[1].outcome, SetOutcome::replaced);
    const std::uint32_t a = map_of("a");
    files.feed("c.txt", {"192.0.2.4"});
    EXPECT_TRUE(done(as_daemon).hooks[0].plan.waiting.empty());
    EXPECT_EQ(kernel.running.table.sets[1].name, "c");
    EXPECT_EQ(map_of("a"), a);
    EXPECT_EQ(kernel.count("attach"), 0U);
}

TEST_F(CycleTest, ASetThatWaitsForAFriendIsBuiltOnce) {
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    configuration.sets[1].action = {.action = SIEVE_ACTION_DROP};
    std::filesystem::remove(files.path("a.txt")); // which is to pass
    const CycleOptions as_daemon{.on_failure = OnFailure::go_on};
    EXPECT_EQ(run(as_daemon)->sets[1].outcome, SetOutcome::replaced);
    EXPECT_FALSE(kernel.running.ours);
    const auto again = run(as_daemon);
    EXPECT_EQ(again->sets[1].outcome, SetOutcome::unchanged);
    ASSERT_TRUE(again->hooks.at(0).error);
    expect_error(*again->hooks[0].error, ErrorKind::bad_input);
    files.feed("a.txt", {"192.0.2.1"});
    done(as_daemon);
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_DROP);
    EXPECT_EQ(kernel.running.table.sets.size(), 2U);
}

TEST_F(CycleTest, WhatTheConfigurationNoLongerNamesGoes) {
    done();
    configuration.interfaces[0] = {.name = "eth0", .hook = kernel::HookPoint::ingress, .sets = {"a"}};
    configuration.sets.pop_back();
    const CycleReport report = done();
    EXPECT_TRUE(report.changed);
    EXPECT_FALSE(kernel.running.ours);
    EXPECT_TRUE(kernel.at_tc[kernel::HookPoint::ingress].ours);
    EXPECT_EQ(state.hooks([](const std::string&) {}).value(),
              (std::vector<ManagedHook>{{"eth0", kernel::HookPoint::ingress, 41}}));
    EXPECT_FALSE(std::filesystem::exists(files.path("state/sets/b")));
}

// A hook leaves the configuration while the kernel has no descriptor left. The program goes once it can.
TEST_F(CycleTest, AHookThatCannotBeReadIsNotForgotten) {
    for (const bool hides_interfaces : {false, true}) {
        done();
        const std::vector<InterfaceConfiguration> interfaces =
            std::exchange(configuration.interfaces, std::vector<InterfaceConfiguration>());
        take_descriptors();
        if (hides_interfaces) kernel.refuse("list interfaces");
        const auto report = run({.on_failure = OnFailure::go_on});
        ASSERT_TRUE(report);
        ASSERT_EQ(report->hooks.size(), 1U) << "it is tried again soon, since a hook failed";
        EXPECT_EQ(report->hooks[0].plan.interface, "eth0");
        ASSERT_TRUE(report->hooks[0].error);
        expect_error(*report->hooks[0].error, ErrorKind::kernel_refused);
        EXPECT_FALSE(kernel.changed());
        expect_error(refused(), ErrorKind::kernel_refused);
        give_descriptors();
        kernel.allow("list interfaces");
        EXPECT_TRUE(kernel.running.ours);
        EXPECT_TRUE(done().changed);
        EXPECT_FALSE(kernel.running.ours);
        configuration.interfaces = interfaces;
    }
}

// A hook cannot be read for a while, and leaves the configuration before it can be.
TEST_F(CycleTest, AHookOfTheConfigurationThatCannotBeReadIsNotForgotten) {
    done();
    take_descriptors();
    EXPECT_TRUE(run({.on_failure = OnFailure::go_on}));
    give_descriptors();
    configuration.interfaces.clear();
    EXPECT_TRUE(done().changed);
    EXPECT_FALSE(kernel.running.ours);
}

// Its interface was moved to another network namespace, and comes back.
TEST_F(CycleTest, AProgramThatIsElsewhereIsNotForgotten) {
    done();
    const auto away = [this] {
        const CycleReport report = done({.on_failure = OnFailure::go_on});
        EXPECT_FALSE(report.changed);
        EXPECT_EQ(report.away.size(), 1U);
        return report.away.at(0);
    };
    kernel.eth0_gone = true;
    EXPECT_FALSE(away().left);
    configuration.interfaces.clear();
    EXPECT_TRUE(away().left);
    EXPECT_EQ(away().noted, (ManagedHook{"eth0", kernel::HookPoint::xdp, 41}));
    kernel.eth0_gone = false;
    const CycleReport back = done();
    EXPECT_TRUE(back.changed);
    EXPECT_TRUE(back.away.empty());
    EXPECT_FALSE(kernel.running.ours);
}

// A list changes while the interface is in another network namespace.
TEST_F(CycleTest, AProgramThatComesBackGetsTheListsThatChangedMeanwhile) {
    done();
    const std::uint32_t a = map_of("a");
    const std::uint32_t b = map_of("b");
    files.feed("b.txt", {"192.0.2.7"});
    kernel.eth0_gone = true;
    EXPECT_EQ(done({.on_failure = OnFailure::go_on}).sets[1].outcome, SetOutcome::replaced);
    // Other cycles come before the interface does, and other lists.
    done(remembering);
    EXPECT_EQ(map_of("b"), b);
    files.feed("b.txt", {"192.0.2.8"});
    done({.on_failure = OnFailure::go_on});
    kernel.eth0_gone = false;
    done(remembering);
    EXPECT_NE(map_of("b"), b);
    EXPECT_EQ(map_of("a"), a);
    EXPECT_FALSE(done(remembering).changed);
}

// What runs may be newer than the record, since a controller died before it wrote that.
TEST_F(CycleTest, AFilterThatIsNewerThanItsRecordStays) {
    done();
    const SetRecord before = *state.named("b");
    fs::copy(files.path("state/sets/b"), files.path("b.before"));
    files.feed("b.txt", {"192.0.2.7"});
    done();
    const std::uint32_t b = map_of("b");
    fs::remove_all(files.path("state/sets/b"));
    fs::rename(files.path("b.before"), files.path("state/sets/b"));
    EXPECT_EQ(state.named("b")->identity, before.identity);
    EXPECT_FALSE(done(remembering).changed);
    EXPECT_EQ(map_of("b"), b);
    // Its sources say which list it is.
    done();
    EXPECT_EQ(in_force_entries("b"), 1U);
}

// A range set has no source that would, and whoever keeps it goes by its record and its list.
TEST_F(CycleTest, ARangeSetIsWhatItsRecordSays) {
    done();
    const std::string list = state.list_path("b", state.named("b")->identity);
    ASSERT_TRUE(live::write_next_list(live::TimedList(), state, "b"));
    fs::copy_file(files.path("state/sets/b/next.list"), list, fs::copy_options::overwrite_existing);
    fs::copy(files.path("state/sets/b"), files.path("b.before"));
    files.feed("b.txt", {"192.0.2.7"});
    done();
    fs::remove_all(files.path("state/sets/b"));
    fs::rename(files.path("b.before"), files.path("state/sets/b"));
    configuration.sets[1].sources.clear();
    const auto bytes = fs::file_size(list);
    fs::resize_file(list, bytes - 9);
    EXPECT_FALSE(done(remembering).changed) << "of a list that is damaged, nobody knows what it had";
    EXPECT_EQ(in_force_entries("b"), 1U);
    ASSERT_TRUE(live::write_next_list(live::TimedList(), state, "b"));
    fs::copy_file(files.path("state/sets/b/next.list"), list, fs::copy_options::overwrite_existing);
    EXPECT_TRUE(done(remembering).changed);
    EXPECT_EQ(in_force_entries("b"), 2U);
    EXPECT_FALSE(done(remembering).changed);
}

// The process that gave the lists their new names died before a cycle: what is in force under a name is
// another set's.
TEST_F(CycleTest, NamesThatWereExchangedBeforeACrashAreExchangedAfterIt) {
    configuration.sets[0].action = {.action = SIEVE_ACTION_PASS};
    configuration.sets[1].action = {.action = SIEVE_ACTION_DROP};
    done();
    std::swap(configuration.sets[0].sources, configuration.sets[1].sources);
    std::swap(configuration.sets[0].action, configuration.sets[1].action);
    EXPECT_EQ(take_over_renamed(configuration, state, {}), (std::set<std::string>{"a", "b"}));
    EXPECT_FALSE(state.named("a")->former.empty());
    std::filesystem::remove(files.path("a.txt")); // and no source answers after the crash
    std::filesystem::remove(files.path("b.txt"));
    EXPECT_TRUE(done(remembering).changed);
    EXPECT_EQ(in_force_entries("a"), 2U);
    EXPECT_EQ(kernel.running.table.find("a")->action, SIEVE_ACTION_DROP);
    EXPECT_TRUE(state.named("a")->former.empty());
    EXPECT_FALSE(done(remembering).changed);
}

// The other one's list would be in force nowhere.
TEST_F(CycleTest, ASetThatIsHeldBackHoldsTheOneThatItExchangesListsWith) {
    configuration.sets[0].action = {.action = SIEVE_ACTION_DROP};
    configuration.sets[1].action = {.action = SIEVE_ACTION_COUNT};
    done();
    const std::uint32_t a = map_of("a"), b = map_of("b");
    std::swap(configuration.sets[0].sources, configuration.sets[1].sources);
    configuration.sets[0].action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, "eth9"};
    configuration.sets[1].action = {.action = SIEVE_ACTION_DROP};
    for (int i = 0; i < 2; i++) {
        ASSERT_TRUE(run({.on_failure = OnFailure::go_on}));
        EXPECT_EQ(map_of("a"), a);
        EXPECT_EQ(map_of("b"), b);
        EXPECT_EQ(kernel.running.table.find("b")->action, SIEVE_ACTION_COUNT);
    }
    configuration.sets[0].action->target = "eth1";
    done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(in_force_entries("a"), 2U);
    EXPECT_EQ(in_force_entries("b"), 1U);
    EXPECT_EQ(kernel.running.table.find("b")->action, SIEVE_ACTION_DROP);
}

// A hook that refused one of them has both lists under the former names.
TEST_F(CycleTest, AHookThatRefusesKeepsTheMarkOfANewName) {
    done();
    std::swap(configuration.sets[0].sources, configuration.sets[1].sources);
    kernel.refuse("test a", ErrorKind::bad_input);
    ASSERT_TRUE(run({.ask = Ask::nothing, .on_failure = OnFailure::go_on}));
    for (const char* set : {"a", "b"}) EXPECT_FALSE(state.named(set)->former.empty());
    kernel.allow("test a");
    EXPECT_TRUE(done(remembering).changed);
    EXPECT_EQ(in_force_entries("a"), 2U);
    for (const char* set : {"a", "b"}) EXPECT_TRUE(state.named(set)->former.empty());
}

// Sets that become one stay in force until that has its list.
TEST_F(CycleTest, SetsThatGoAwaitTheOneThatReplacesThem) {
    configuration.sets[0].action = {.action = SIEVE_ACTION_PASS};
    configuration.sets[1].action = {.action = SIEVE_ACTION_DROP};
    done();
    const Configuration before = configuration;
    configuration.interfaces[0].sets = {"both", "c"};
    add_set("both", {"192.0.2.1"});
    add_set("c", {"192.0.2.9"});
    configuration.sets[2].sources = {before.sets[0].sources[0], before.sets[1].sources[0],
                                     FileSpec{files.path("late.txt")}};
    configuration.sets[2].action = {.action = SIEVE_ACTION_COUNT};
    configuration.sets.erase(configuration.sets.begin(), configuration.sets.begin() + 2);
    for (int i = 0; i < 2; i++) { // what it takes is kept, too
        ASSERT_TRUE(run({.on_failure = OnFailure::go_on}));
        EXPECT_EQ(names_in_force(), (std::vector<std::string>{"a", "b", "c"}));
        EXPECT_EQ(kernel.running.table.sets[0].action, SIEVE_ACTION_PASS);
    }
    files.feed("late.txt", {"192.0.2.8"});
    done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(names_in_force(), (std::vector<std::string>{"both", "c"}));
    EXPECT_FALSE(state.named("a"));
}

// One that has been there, too, and what it has not heard yet is on the former list alone.
TEST_F(CycleTest, ASetThatGoesAwaitsItsSourcesInAnother) {
    done();
    configuration.interfaces[0].sets = {"b"};
    configuration.sets[1].sources.push_back(configuration.sets[0].sources[0]);
    configuration.sets.erase(configuration.sets.begin());
    for (int i = 0; i < 2; i++) {
        done(remembering);
        EXPECT_EQ(names_in_force(), (std::vector<std::string>{"a", "b"}));
        EXPECT_TRUE(state.named("a"));
    }
    done();
    EXPECT_EQ(names_in_force(), std::vector<std::string>{"b"});
    EXPECT_EQ(in_force_entries("b"), 3U);
    EXPECT_FALSE(state.named("a"));
}

TEST_F(CycleTest, ASetThatGoesAwaitsASourceThatTheOtherDoesWithout) {
    bool answers = true;
    sandbox.run = [&, inner = sandbox.run](const ChildOrder& child) -> Result<ChildEnd> {
        if (child.role != ChildRole::command) return inner(child);
        ChildEnd end;
        end.number = answers ? 0 : 1;
        if (answers && child.output("192.0.2.7\n") != 0) return bad_input("not written");
        return end;
    };
    configuration.sets[0].sources = {CommandSpec{.arguments = {"one"}}};
    done();
    answers = false;
    configuration.interfaces[0].sets = {"all"};
    add_set("all", {"192.0.2.9"});
    for (const SetConfiguration& set : {configuration.sets[0], configuration.sets[1]})
        configuration.sets.back().sources.push_back(set.sources[0]);
    configuration.sets.erase(configuration.sets.begin(), configuration.sets.begin() + 2);
    for (int i = 0; i < 2; i++) {
        refresh({"all"});
        EXPECT_EQ(names_in_force(), (std::vector<std::string>{"a", "all"}));
        EXPECT_EQ(in_force_entries("all"), 3U);
    }
    answers = true;
    refresh({"all"});
    EXPECT_EQ(names_in_force(), std::vector<std::string>{"all"});
    EXPECT_EQ(in_force_entries("all"), 4U);
}

// Sets of a file and of a program, which prints one address, or fails.
class MovedSourceTest : public CycleTest {
  protected:
    const CommandSpec one{.arguments = {"one"}};
    const CommandSpec two{.arguments = {"two"}};
    std::map<std::string, std::string> printed{{"one", "192.0.2.11\n"}, {"two", "192.0.2.12\n"}};

    MovedSourceTest() {
        sandbox.run = [this, inner = sandbox.run](const ChildOrder& child) -> Result<ChildEnd> {
            if (child.role != ChildRole::command) return inner(child);
            const auto order = read_order(child.message);
            const auto text = printed.find(std::get<CommandOrder>(order->order).arguments.back());
            ChildEnd end;
            end.number = text == printed.end() ? 1 : 0;
            if (text != printed.end() && child.output(text->second) != 0) return bad_input("not written");
            return end;
        };
        sources(0).emplace_back(one);
        done();
    }
    std::vector<SourceSpec>& sources(std::size_t set) { return configuration.sets[set].sources; }
    void move_one() {
        sources(0).pop_back();
        sources(1).emplace_back(one);
    }
};

TEST_F(MovedSourceTest, StaysUntilTheOtherSetHasReadIt) {
    ASSERT_EQ(in_force_entries("a"), 2U);
    move_one();
    files.feed("a.txt", {"192.0.2.1", "192.0.2.4"}); // is no less in force for that
    for (int i = 0; i < 2; i++) {
        const CycleReport report = refresh({"a"});
        EXPECT_EQ(in_force_entries("a"), 3U);
        ASSERT_TRUE(report.sets.at(0).error);
        expect_says(report.sets.at(0).error->message);
        done(remembering);
    }
    printed.erase("one");
    refresh({"b"}); // does without it
    refresh({"a"});
    EXPECT_EQ(in_force_entries("a"), 3U);
    printed["one"] = "192.0.2.11\n";
    refresh({"b"});
    EXPECT_EQ(in_force_entries("a"), 3U);
    EXPECT_EQ(in_force_entries("b"), 3U);
    EXPECT_FALSE(refresh({"a"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 2U);
}

// What has been read may still be refused, or wait.
TEST_F(MovedSourceTest, StaysUntilTheOtherSetHasItInForce) {
    move_one();
    EXPECT_TRUE(refresh({"a", "b"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 2U);
    EXPECT_EQ(in_force_entries("b"), 3U);
    EXPECT_FALSE(refresh({"a"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 1U);
}

TEST_F(MovedSourceTest, StaysAsLongAsTheOtherSetWaits) {
    sources(0).pop_back();
    add_set("c", {"192.0.2.21"});
    configuration.sets.back().sources.emplace_back(one);
    add_set("friends", {"192.0.2.8"});
    std::filesystem::remove(files.path("friends.txt"));
    configuration.sets.back().action = control::WantedAction{SIEVE_ACTION_PASS};
    configuration.interfaces[0].sets = {"friends", "c", "a", "b"};
    for (int i = 0; i < 2; i++) {
        refresh({"c"});
        refresh({"a"});
        EXPECT_EQ(in_force_entries("a"), 2U);
    }
    files.feed("friends.txt", {"192.0.2.8"});
    refresh({"friends"});
    refresh({"a"});
    EXPECT_EQ(in_force_entries("a"), 1U);
    EXPECT_EQ(in_force_entries("c"), 2U);
}

// The interface is the same, and its hooks are not.
TEST_F(MovedSourceTest, StaysUntilTheOtherSetHasItAtItsHook) {
    configuration.interfaces[0].sets = {"a"};
    configuration.interfaces.push_back({.name = "eth0", .hook = kernel::HookPoint::ingress, .sets = {"b"}});
    done();
    move_one();
    EXPECT_TRUE(refresh({"a"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 2U);
    refresh({"b"});
    EXPECT_FALSE(refresh({"a"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 1U);
}

TEST_F(MovedSourceTest, IsGivenUpAtOnceWhereAllChangeOrNothing) {
    sources(1).emplace_back(two);
    done();
    std::swap(sources(0).back(), sources(1).back());
    done();
    EXPECT_EQ(in_force_entries("a"), 2U);
    EXPECT_EQ(in_force_entries("b"), 3U);
}

TEST_F(MovedSourceTest, OfAFileThatIsMissingKeepsTheList) {
    const FileSpec file{files.feed("c.txt", {"192.0.2.5", "192.0.2.6"})};
    sources(0).emplace_back(file);
    done();
    sources(0).pop_back();
    sources(1).emplace_back(file);
    std::filesystem::remove(file.path);
    EXPECT_TRUE(refresh({"a"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 4U);
}

TEST_F(MovedSourceTest, OfAFileStaysToo) {
    const FileSpec file{files.feed("c.txt", {"192.0.2.5", "192.0.2.6"})};
    sources(0).emplace_back(file);
    done();
    sources(0).pop_back();
    sources(1).emplace_back(file);
    EXPECT_TRUE(refresh({"a"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 4U);
    refresh({"b"});
    EXPECT_FALSE(refresh({"a"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 2U);
}

TEST_F(MovedSourceTest, ThatAreExchangedWaitForNoOneForEver) {
    sources(1).emplace_back(two);
    done();
    std::swap(sources(0).back(), sources(1).back());
    refresh({"a"});
    EXPECT_EQ(in_force_entries("a"), 3U);
    EXPECT_FALSE(refresh({"b"}).sets.at(1).error);
    EXPECT_EQ(in_force_entries("b"), 3U);
    EXPECT_FALSE(refresh({"a"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 2U);
}

// What is left of it would be judged as it never was to be.
TEST_F(MovedSourceTest, StaysInNoSetWithAnotherAction) {
    move_one();
    configuration.sets[0].action = control::WantedAction{SIEVE_ACTION_PASS};
    EXPECT_FALSE(refresh({"a"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 1U);
}

TEST_F(MovedSourceTest, StaysWhereTheOtherSetIsOfTheSameInterface) {
    configuration.interfaces[0].sets = {"a"};
    move_one();
    EXPECT_FALSE(refresh({"a"}).sets.at(0).error);
    EXPECT_EQ(in_force_entries("a"), 1U);
}

// Nobody knows what is in a folder that is not there. What the other sources are is known all the same.
TEST_F(CycleTest, AFolderThatIsNotThereHidesNoOtherSource) {
    done();
    configuration.sets[0].name = "aa";
    configuration.sets[0].sources.emplace_back(FolderSpec{files.path("lists/")});
    configuration.interfaces[0].sets = {"aa", "b"};
    ASSERT_TRUE(run({.on_failure = OnFailure::go_on}));
    EXPECT_EQ(names_in_force(), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(state.named("a"));
    std::filesystem::create_directory(files.path("lists"));
    files.feed("lists/more.txt", {"192.0.2.8"});
    done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(names_in_force(), (std::vector<std::string>{"aa", "b"}));
    EXPECT_EQ(in_force_entries("aa"), 2U);
    // A folder that goes keeps no list from its set's next name, and a pattern does not either.
    configuration.sets[0].sources.emplace_back(GlobSpec{files.path("others/*.txt")});
    std::filesystem::create_directory(files.path("others"));
    files.feed("others/some.txt", {"192.0.2.9"});
    done({.on_failure = OnFailure::go_on});
    for (const char* folder : {"lists", "others"}) std::filesystem::remove_all(files.path(folder));
    configuration.sets[0].name = "ab";
    configuration.interfaces[0].sets = {"ab", "b"};
    done(remembering);
    EXPECT_EQ(names_in_force(), (std::vector<std::string>{"ab", "b"}));
    EXPECT_EQ(in_force_entries("ab"), 3U);
    // Without one of its sources it is another set, whose action waits for its list.
    SetConfiguration& set = configuration.sets[0];
    set.sources.pop_back();
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    done(remembering);
    EXPECT_NE(kernel.running.table.find("ab")->action, SIEVE_ACTION_PASS);
    // So it is with a folder that is not there, or that is empty.
    for (int i = 0; i < 2; i++) {
        set.sources = {FolderSpec{files.path("friends/")}};
        done(remembering);
        EXPECT_NE(kernel.running.table.find("ab")->action, SIEVE_ACTION_PASS);
        std::filesystem::create_directory(files.path("friends"));
    }
}

// Bans of a set that goes are those of another one, which has bans from now on.
class MovedBans : public CycleTest {
  protected:
    MovedBans() {
        done();
        SetRecord record = *state.named("a");
        record.sources = {{.source = source_name(BanSpec{})}};
        EXPECT_TRUE(state.commit("a", record));
        EXPECT_TRUE(ledger("a").append({{.prefix = test::prefix_of("192.0.2.9")}}));
        configuration.sets.erase(configuration.sets.begin());
        configuration.interfaces[0].sets = {"b"};
    }
    [[nodiscard]] BanLedger ledger(const std::string& set) const { return {state.path(), set}; }
    [[nodiscard]] bool has_the_ban(const std::string& set) const {
        const auto bans = ledger(set).bans(live::current_time());
        return bans && bans->contains(test::prefix_of("192.0.2.9"));
    }
};

TEST_F(MovedBans, ASetThatGetsBansBesidesItsListTakesThoseOfTheOneThatGoes) {
    configuration.sets[0].sources.emplace_back(BanSpec{});
    EXPECT_TRUE(take_over_renamed(configuration, state, {}).empty());
    EXPECT_TRUE(has_the_ban("b"));
    EXPECT_TRUE(state.named("a")) << "it is in force until they are";
    EXPECT_TRUE(sets_that_await_bans(configuration, state).empty());
}

TEST_F(MovedBans, ASetDoesNotBeginWithoutBansThatCannotMove) {
    for (const std::string name : {"new", "b"}) { // one with another name, and one with bans besides its list
        SetConfiguration& set = configuration.sets[0];
        set.name = name;
        if (name == "b")
            set.sources = {FileSpec{files.path("b.txt")}, BanSpec{}};
        else
            set.sources = {BanSpec{}};
        fs::create_directories(ban_ledger_path(state.path(), name) + "/content");
        take_over_renamed(configuration, state, {});
        EXPECT_EQ(sets_that_await_bans(configuration, state), std::set<std::string>{name});
        EXPECT_TRUE(has_the_ban("a"));
        fs::remove_all(ban_ledger_path(state.path(), name));
    }
    take_over_renamed(configuration, state, {});
    EXPECT_TRUE(has_the_ban("b"));
    EXPECT_TRUE(sets_that_await_bans(configuration, state).empty());
}

// A set that changes in place is never read as a whole.
TEST_F(MovedBans, ASetThatGoesDoesNotAwaitAFileThatIsGone) {
    std::filesystem::create_directory(files.path("lists"));
    SetRecord record = *state.named("a");
    record.sources = {{.source = files.path("lists/gone.txt"), .digest = record.list_digest}};
    ASSERT_TRUE(state.commit("a", record));
    record = *state.named("b");
    record.sources.push_back({.source = source_name(BanSpec{})});
    ASSERT_TRUE(state.commit("b", record));
    configuration.sets[0].sources = {BanSpec{}, FileSpec{files.path("b.txt")},
                                     FolderSpec{files.path("lists/")}};
    done(remembering);
    EXPECT_EQ(names_in_force(), std::vector<std::string>{"b"});
}

// The record of a set that changes in place names a source that it does without, since that has never
// answered.
TEST_F(MovedBans, ASetThatGoesAwaitsASourceThatALiveSetDoesWithout) {
    const CommandSpec one{.arguments = {"one"}};
    const std::string source = origin_identity(CommandOrigin{one.arguments});
    SetRecord record = *state.named("a");
    record.sources = {{.source = source, .digest = record.list_digest}};
    ASSERT_TRUE(state.commit("a", record));
    configuration.sets[0].sources = {BanSpec{}, one, FileSpec{files.path("b.txt")}};
    record = *state.named("b");
    record.beside = record.sources;
    record.sources.push_back({.source = source_name(BanSpec{})});
    record.sources.push_back({.source = source});
    record.beside.push_back({.source = source});
    ASSERT_TRUE(state.commit("b", record));
    done(remembering);
    EXPECT_EQ(names_in_force(), (std::vector<std::string>{"a", "b"}));
    record.beside.back().digest = record.list_digest; // it has answered
    ASSERT_TRUE(state.commit("b", record));
    done(remembering);
    EXPECT_EQ(names_in_force(), std::vector<std::string>{"b"});
}

// Ids begin anew at each boot.
TEST_F(CycleTest, AProgramOfAnotherBootIsNotTakenForOurs) {
    done();
    std::ofstream(files.path("state/hooks.json"))
        << R"([{"interface": "eth0", "hook": "xdp", "program_id": 41, "boot": "another"}])";
    configuration.interfaces.clear();
    EXPECT_FALSE(done().changed);
    EXPECT_TRUE(kernel.running.ours);
}

// The mode cannot change while packets flow. The lists stay current.
TEST_F(CycleTest, AnotherModeDoesNotFreezeTheLists) {
    done();
    configuration.interfaces[0].mode = kernel::ModeChoice::skb;
    files.feed("b.txt", {"192.0.2.2"});
    expect_error(refused(), ErrorKind::attached_otherwise);
    const CycleReport report = done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::replaced);
    EXPECT_EQ(kernel.count("attach"), 0U);
    ASSERT_TRUE(report.hooks[0].plan.otherwise);
    expect_error(*report.hooks[0].plan.otherwise, ErrorKind::attached_otherwise);
}

TEST_F(CycleTest, ALostStateDirectoryIsNoHarm) {
    done();
    std::filesystem::remove_all(files.path("state/sets"));
    const CycleReport report = done();
    EXPECT_TRUE(report.changed);
    EXPECT_EQ(kernel.count("attach"), 0U);
    EXPECT_FALSE(done().changed);
}

// What is in force is in force, and each failure is told.
TEST_F(CycleTest, ARecordThatCannotBeWrittenKeepsNoOtherFromBeingWritten) {
    add_set("c", {"192.0.2.4"});
    configuration.interfaces[0].sets = {"a", "b", "c"};
    for (const char* set : {"a", "b"})
        fs::create_directories(files.path("state/sets/") + set + "/record.json/content");
    const CycleReport report = done({.on_failure = OnFailure::go_on});
    expect_error(report.unwritten.value(), ErrorKind::bad_input);
    ASSERT_FALSE(remarks.empty());
    expect_says(remarks.back());
    for (const SetReport& set : report.sets) EXPECT_EQ(set.outcome, SetOutcome::replaced);
    EXPECT_EQ(names_in_force(), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_TRUE(state.named("c"));
    EXPECT_EQ(state.hooks([](const std::string&) {}).value(),
              (std::vector<ManagedHook>{{"eth0", kernel::HookPoint::xdp, 41}}));
    for (const char* set : {"a", "b"}) fs::remove_all(files.path("state/sets/") + set + "/record.json");
    done({.on_failure = OnFailure::go_on});
    EXPECT_TRUE(state.named("a"));
    EXPECT_TRUE(state.named("b"));
}

// After a reboot, that is all that is left of its members.
TEST_F(CycleTest, ASetIsNotForgottenBeforeTheRecordOfTheOneThatReplacesIt) {
    done();
    configuration.sets[1].name = "c";
    configuration.sets[1].sources.emplace_back(FileSpec{files.feed("more.txt", {"192.0.2.8"})});
    configuration.interfaces[0].sets = {"a", "c"};
    fs::create_directories(files.path("state/sets/c/record.json/content"));
    EXPECT_TRUE(done({.on_failure = OnFailure::go_on}).unwritten);
    EXPECT_EQ(names_in_force(), (std::vector<std::string>{"a", "c"}));
    EXPECT_TRUE(state.named("b"));
    fs::remove_all(files.path("state/sets/c/record.json"));
    EXPECT_FALSE(done({.on_failure = OnFailure::go_on}).unwritten);
    EXPECT_FALSE(state.named("b"));
}

TEST_F(CycleTest, TellsWhenAServerWantsToBeAskedAgain) {
    configuration.sets[1].sources = {HttpSpec{.url = "http://127.0.0.1:1/"}};
    sandbox.run = [](const ChildOrder& child) -> Result<ChildEnd> {
        if (child.role != ChildRole::fetch) return test::work_in_process(child);
        ChildEnd end;
        end.report = write_failure(
            {{ErrorKind::bad_input, "the server has too much to do", {}}, std::chrono::seconds(33)});
        return end;
    };
    const CycleReport report = done({.on_failure = OnFailure::go_on});
    EXPECT_EQ(report.sets[0].retry_after, std::nullopt);
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::failed);
    EXPECT_EQ(report.sets[1].retry_after, std::chrono::seconds(33));
}

TEST_F(CycleTest, ASetThatFollowsAStreamIsNotAsked) {
    done();
    configuration.sets[1].sources = {CrowdsecSpec{.url = "http://127.0.0.1:1", .key_file = "/nonexistent"}};
    const CycleReport report = done();
    EXPECT_FALSE(report.changed);
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::unchanged);
}

TEST_F(CycleTest, ManySetsAreRefreshedAtOnce) {
    for (int i = 0; i < 12; i++) {
        const std::string name = "more" + std::to_string(i);
        add_set(name, {"192.0.2." + std::to_string(i)});
        configuration.interfaces[0].sets.push_back(name);
    }
    const CycleReport report = done();
    ASSERT_EQ(report.sets.size(), 14U);
    for (std::size_t i = 0; i < report.sets.size(); i++) {
        EXPECT_EQ(report.sets[i].name, configuration.sets[i].name);
        EXPECT_EQ(report.sets[i].outcome, SetOutcome::replaced);
    }
}

TEST_F(CycleTest, AFileWithANewTimeIsReadOnce) {
    done();
    files.feed("b.txt", {"192.0.2.3", "192.0.2.2"}); // the same list
    EXPECT_FALSE(done().changed);
    const auto now = state.read("b", [](const std::string&) {});
    ASSERT_TRUE(now);
    int children = 0;
    sandbox.run = [&](const ChildOrder& order) {
        children++;
        return test::work_in_process(order);
    };
    EXPECT_FALSE(done().changed);
    EXPECT_EQ(children, 0) << "its digest is in the record";
}

} // namespace
} // namespace sieve::service
