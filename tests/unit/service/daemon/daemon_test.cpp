// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/daemon.hpp"

#include <poll.h>
#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/service/sandbox/child_messages.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"
#include "unit/service/daemon/records.hpp"
#include "unit/service/in_process.hpp"
#include "unit/service/lists.hpp"

namespace sieve::service {
namespace {

using namespace std::chrono_literals;

// Longer than any event takes; a test that gets its events never waits for it.
constexpr auto most_patience = 600s;

// The host's addresses are asked at the start, by each refresh, and before a table changes. A test can hold
// whoever asks.
class SlowHost final : public HostAddresses {
  public:
    Result<std::vector<HostAddress>> read() override {
        std::unique_lock lock(mutex_);
        const int number = ++reads_;
        if (number == throws_at_) throw std::runtime_error("as a bug does");
        changed_.notify_all();
        changed_.wait(lock, [&] { return number < held_from_; });
        return addresses;
    }
    std::vector<HostAddress> addresses; // while nobody reads them
    // The next but so many.
    void throw_after(int reads) {
        const std::lock_guard lock(mutex_);
        throws_at_ = reads_ + reads + 1;
    }
    void hold() { hold_from(0); }
    void hold_from(int number) {
        const std::lock_guard lock(mutex_);
        held_from_ = number;
        changed_.notify_all();
    }
    void release() { hold_from(never); }
    void await_read(int number) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return reads_ >= number; });
    }
    int reads() {
        const std::lock_guard lock(mutex_);
        return reads_;
    }

  private:
    static constexpr int never = std::numeric_limits<int>::max();
    std::mutex mutex_;
    std::condition_variable changed_;
    int held_from_ = never;
    int throws_at_ = 0;
    int reads_ = 0;
};

class DaemonTest : public testing::Test {
  protected:
    test::Files files;
    test::FakeKernel kernel;
    SlowHost host;
    test::RecordedLog log;
    test::RecordedNotifier notifier;
    watching::Statistics statistics{{}};
    EventLoop loop = EventLoop::make().value();
    std::atomic<bool> child_throws = false;
    std::unique_ptr<Daemon> daemon;

    DaemonTest() {
        sigset_t signals;
        ::sigemptyset(&signals);
        for (const int signal : {SIGHUP, SIGTERM, SIGINT}) ::sigaddset(&signals, signal);
        ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
        files.feed("a.txt", {"192.0.2.1"});
        files.feed("b.txt", {"192.0.2.2", "192.0.2.3"});
        configure();
    }
    ~DaemonTest() override {
        host.release();
        daemon.reset();
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

    void configure(const std::string& service = {}, const std::string& interface = "eth0") {
        std::ofstream(files.path("c.toml")) << fmt::format(R"([service]
state-directory = "{}"
listen = ""
{}
[[interface]]
name = "{}"
sets = ["a", "b"]
[set.a]
sources = ["a.txt"]
[set.b]
sources = ["b.txt"]
)",
                                                           files.path("state"), service, interface);
    }
    // Only set b may pass.
    void configure_allowlist() {
        std::ofstream(files.path("c.toml")) << fmt::format(R"([service]
state-directory = "{}"
listen = ""
[[interface]]
name = "eth0"
default = "drop"
sets = ["b"]
[set.b]
sources = ["b.txt"]
action = "pass"
)",
                                                           files.path("state"));
    }
    DaemonParts parts() { return {loop, kernel, host, log, notifier, statistics}; }
    Result<std::unique_ptr<Daemon>> try_start() {
        return Daemon::start(
            parts(), {.configuration = files.path("c.toml"), .patience = 0ms, .sandbox = test::in_process()});
    }
    void start() {
        auto started = try_start();
        ASSERT_TRUE(started) << started.error().message;
        daemon = std::move(*started);
    }
    // Its only set changes in place. Timers run a hundred times as fast.
    void start_with_a_live_set() {
        files.feed("live.txt", {"192.0.2.1"});
        std::ofstream(files.path("c.toml")) << fmt::format(R"([service]
state-directory = "{}"
listen = ""
[[interface]]
name = "eth0"
sets = ["live"]
[set.live]
kind = "ddlcbf"
sources = ["live.txt"]
)",
                                                           files.path("state"));
        auto started = Daemon::start(parts(), {.configuration = files.path("c.toml"),
                                               .patience = 0ms,
                                               .pace = 100,
                                               .sandbox = test::in_process()});
        ASSERT_TRUE(started) << started.error().message;
        daemon = std::move(*started);
    }
    template <class Condition>
    void until(Condition condition) {
        const auto end = std::chrono::steady_clock::now() + most_patience;
        while (!condition()) {
            (void)loop.run_once(10ms); // what other threads do need not wake the loop
            if (std::chrono::steady_clock::now() > end)
                FAIL() << "what was waited for did not happen; the log:\n" << log.text();
        }
    }
    void until_said(const std::string& part) {
        until([&] { return log.says(part); });
    }
    // The first cycle and the one that asks every set.
    void settle() {
        until([this] { return daemon->cycles() >= 2 && daemon->is_idle(); });
        log.forget();
        kernel.steps.clear();
    }

  private:
    sigset_t before_{};
};

TEST_F(DaemonTest, IsReadyWhenWhatIsRememberedIsInForce) {
    start();
    EXPECT_TRUE(notifier.sent.empty());
    settle();
    EXPECT_TRUE(kernel.running.ours);
    daemon.reset();
    // After a reboot, and with sources that do not answer.
    kernel.running = {};
    const int reads = host.reads();
    host.hold();
    notifier.sent.clear();
    start();
    until([this] { return notifier.count("READY=1") > 0; });
    EXPECT_TRUE(kernel.running.ours);
    ASSERT_EQ(kernel.running.table.sets.size(), 2U);
    EXPECT_EQ(notifier.sent.at(0), "READY=1\nSTATUS=2 sets in force on eth0");
    EXPECT_TRUE(log.says("the start did not wait for the addresses that this host lives by"));
    host.await_read(reads + 2); // the start's, and then sources are asked
}

// A path on a server that is dead would hold whoever looks at it.
TEST_F(DaemonTest, NoPathIsLookedAtBeforeWhatIsRememberedIsInForce) {
    start();
    settle();
    daemon.reset();
    kernel.running = {};
    std::filesystem::create_symlink("loop", files.path("loop")); // leads to itself, which a watch tells
    std::ofstream(files.path("c.toml"), std::ios::app)
        << "[[interface]]\nname = \"eth0\"\nhook = \"ingress\"\nsets = [\"c\"]\n"
        << "[set.c]\nsources = [\"loop/c.txt\"]\n";
    start();
    EXPECT_FALSE(log.says("cannot be watched")) << log.text();
    until_said("cannot be watched");
    EXPECT_TRUE(kernel.running.ours);
    until([this] { return daemon->cycles() >= 2 && daemon->is_idle(); });
    // A change is not missed, nor is one after a reload.
    files.feed("a.txt", {"192.0.2.7", "192.0.2.8"});
    until_said("set a: a new list with 2 entries");
}

TEST_F(DaemonTest, ASetWithoutAListIsNamedAndTheOthersGoOn) {
    std::filesystem::remove(files.path("b.txt"));
    start();
    until([this] { return daemon->cycles() >= 2 && daemon->is_idle(); });
    ASSERT_EQ(kernel.running.table.sets.size(), 1U);
    EXPECT_TRUE(log.says("eth0: set b waits for its first list; the other sets go on"));
    const std::string told = notifier.sent.back();
    EXPECT_TRUE(told.starts_with("STATUS=1 of 2 sets in force on eth0; set b waits for its first list: "))
        << told;
    EXPECT_NE(told.find("b.txt: cannot be read"), std::string::npos) << told;
    EXPECT_NE(told.find(", asked again at 20"), std::string::npos) << told;
    EXPECT_EQ(told.find("its refresh failed"), std::string::npos) << told;
    files.feed("b.txt", {"192.0.2.2"});
    until([this] { return notifier.sent.back() == "STATUS=2 sets in force on eth0"; });
}

// A list that one hook takes and another refuses is the last good one, and the other is still to get it.
TEST_F(DaemonTest, AHookThatRefusedAListGetsItLater) {
    std::ofstream(files.path("c.toml")) << fmt::format(R"([service]
state-directory = "{}"
listen = ""
[[interface]]
name = "eth0"
sets = ["a"]
[[interface]]
name = "eth0"
hook = "ingress"
sets = ["a"]
[set.a]
sources = ["a.txt"]
)",
                                                       files.path("state"));
    start();
    settle();
    const auto in_force_at = [&](kernel::HookPoint point) {
        return identity_text(kernel.read_filter(kernel.at(point).table.sets.at(0).map_id)->file);
    };
    const auto are_alike = [&] {
        return in_force_at(kernel::HookPoint::xdp) == in_force_at(kernel::HookPoint::ingress);
    };
    ASSERT_TRUE(are_alike());
    std::atomic<int> replaced = 0;
    kernel.before("replace", [&](const std::string& what) -> Status {
        return replaced++ == 0 ? Status() : kernel_refused(what + " was refused");
    });
    files.feed("a.txt", {"192.0.2.9"});
    until_said("eth0 ingress: stays as it is: replace was refused");
    until([&] { return daemon->is_idle(); });
    ASSERT_FALSE(are_alike());
    log.forget();
    const std::size_t cycles = daemon->cycles();
    daemon->interfaces_changed({.names = {"eth0"}});
    until([&] { return daemon->cycles() > cycles && daemon->is_idle(); });
    EXPECT_FALSE(log.says("as it should be again")) << log.text();
    EXPECT_FALSE(are_alike());
    kernel.allow("replace");
    daemon->interfaces_changed({.names = {"eth0"}});
    until(are_alike);
}

// A server whose lists come when the test says so. Each download is a child that waits.
class Server {
  public:
    // Has downloads done here, and all other work in the process.
    SandboxSettings sandbox() {
        SandboxSettings settings;
        settings.run = [this](const ChildOrder& child) -> Result<ChildEnd> {
            return child.role == ChildRole::fetch ? download(child) : test::work_in_process(child);
        };
        return settings;
    }
    void answer(const std::string& url, const std::string& list) {
        const std::lock_guard lock(mutex_);
        lists_[url] = list;
        changed_.notify_all();
    }
    void await_request(const std::string& url) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return asked_.contains(url); });
    }
    std::size_t most_at_once() {
        const std::lock_guard lock(mutex_);
        return most_;
    }
    int requests() {
        const std::lock_guard lock(mutex_);
        return requests_;
    }

  private:
    Result<ChildEnd> download(const ChildOrder& child) {
        SIEVE_ASSIGN(const ConfinedOrder order, read_order(child.message));
        const std::string url = std::get<FetchOrder>(order.order).request.url;
        std::unique_lock lock(mutex_);
        asked_.insert(url);
        requests_++;
        most_ = std::max(most_, ++now_);
        changed_.notify_all();
        while (!lists_.contains(url)) {
            lock.unlock();
            pollfd cancel{.fd = child.cancel, .events = POLLIN, .revents = 0};
            const bool called_off = ::poll(&cancel, 1, 1) > 0;
            lock.lock();
            if (called_off) break;
        }
        now_--;
        if (!lists_.contains(url)) return bad_input(url + ": was called off");
        if (lists_[url].empty()) return bad_input(url + ": is dead");
        if (!write_all(child.descriptors.at(0), lists_[url])) return bad_input("cannot be written");
        ChildEnd end;
        end.report = write_report(HttpAnswer{});
        return end;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::string> lists_;
    std::set<std::string> asked_;
    std::size_t now_ = 0, most_ = 0;
    int requests_ = 0;
};

// However many servers hang, lists on this machine, other servers, interfaces, reloads and stops do not wait.
TEST_F(DaemonTest, AServerThatHangsDelaysNobodyElse) {
    constexpr int hanging = 14;
    Server server;
    {
        std::ofstream file(files.path("c.toml"));
        file << fmt::format(
            "[service]\nstate-directory = \"{}\"\nlisten = \"\"\n[[interface]]\nname = \"eth*\"\n"
            "sets = [\"a\", \"good\"",
            files.path("state"));
        for (int i = 0; i < hanging; i++) file << fmt::format(", \"hangs{}\"", i);
        file << "]\n[set.a]\nsources = [\"a.txt\"]\n[set.good]\nsources = [\"http://192.0.2.1/zzz\"]\n";
        for (int i = 0; i < hanging; i++)
            file << fmt::format("[set.hangs{0}]\nsources = [\"http://192.0.2.1/{0}\"]\n", i);
    }
    auto started = Daemon::start(
        parts(), {.configuration = files.path("c.toml"), .patience = 0ms, .sandbox = server.sandbox()});
    ASSERT_TRUE(started) << started.error().message;
    daemon = std::move(*started);
    until_said("eth0: attached; in force: a");
    for (int i = 0; i < hanging; i++) server.await_request(fmt::format("http://192.0.2.1/{}", i));
    server.answer("http://192.0.2.1/zzz", "192.0.2.7\n");
    until_said("set good: a new list with 1 entry");
    until([this] { return kernel.running.table.find("good") != nullptr; });
    files.feed("a.txt", {"192.0.2.1", "192.0.2.2"});
    until_said("set a: a new list with 2 entries (before: 1)");
    until([this] { return daemon->is_idle(); });
    // A new interface.
    kernel.running = {};
    daemon->interfaces_changed({.names = {"eth0"}});
    until([this] { return kernel.running.ours && daemon->is_idle(); });
    EXPECT_EQ(kernel.running.table.sets.size(), 2U);
    EXPECT_EQ(server.most_at_once(), hanging + 1);
    // One of them answers, another is dead.
    server.answer("http://192.0.2.1/3", "192.0.2.8\n");
    server.answer("http://192.0.2.1/4", "");
    until_said("eth0: changed: +hangs3");
    until_said("set hangs4: http://192.0.2.1/4: is dead");
    log.forget();
    daemon->reload();
    until_said("the configuration was read anew");
    until([this] { return notifier.count("READY=1") > 1; });
    EXPECT_EQ(log.count("called off"), 0U) << log.text();
    daemon->stop();
    EXPECT_TRUE(daemon->run());
    daemon.reset(); // what it still asks, it asks of this server
}

// It is asked at its own time, and what is known of it stays known.
TEST_F(DaemonTest, AFileThatChangesDoesNotHaveTheServerBesideItAsked) {
    const std::string url = "http://192.0.2.1/list";
    Server server;
    std::ofstream(files.path("c.toml")) << fmt::format(R"([service]
state-directory = "{}"
listen = ""
[[interface]]
name = "eth0"
sets = ["a"]
[set.a]
sources = ["a.txt", "{}"]
)",
                                                       files.path("state"), url);
    server.answer(url, "192.0.2.7\n");
    auto started = Daemon::start(parts(), {.configuration = files.path("c.toml"),
                                           .patience = 0ms,
                                           .backoff = {.first = 1h},
                                           .sandbox = server.sandbox()});
    ASSERT_TRUE(started) << started.error().message;
    daemon = std::move(*started);
    settle();
    files.feed("a.txt", {"192.0.2.1", "192.0.2.2"});
    until_said("set a: a new list with 3 entries (before: 2)");
    EXPECT_EQ(server.requests(), 1);
    server.answer(url, ""); // it is dead from now on
    daemon->reload();
    until_said("set a: http://192.0.2.1/list: is dead");
    EXPECT_EQ(server.requests(), 2);
    files.feed("a.txt", {"192.0.2.1", "192.0.2.2", "192.0.2.3"});
    until_said(
        "set a: http://192.0.2.1/list: is dead; a new list with 4 entries is in force: what its other");
    EXPECT_EQ(server.requests(), 2);
    EXPECT_TRUE(notifier.sent.back().ends_with("; set a: its refresh failed")) << notifier.sent.back();
    server.answer(url, "192.0.2.7\n");
    daemon->reload();
    until_said("set a: its sources answer again");
    daemon.reset(); // what it still asks, it asks of this server
}

TEST_F(DaemonTest, TakesOverWhatRuns) {
    start();
    settle();
    daemon.reset();
    log.forget();
    start();
    until_said("eth0: taken over as it runs; in force: a, b");
    settle();
    EXPECT_FALSE(kernel.changed());
}

TEST_F(DaemonTest, AChangedFileComesIntoForceAndNothingElse) {
    start();
    settle();
    files.feed("b.txt", {"192.0.2.2"});
    until_said("set b: a new list with 1 entry (before: 2)");
    EXPECT_EQ(kernel.count("bring in b"), 1U);
    EXPECT_EQ(kernel.count("bring in a"), 0U);
    EXPECT_TRUE(log.says("eth0: changed: b has a new filter"));
}

TEST_F(DaemonTest, ABadListChangesNothingAndIsSaid) {
    start();
    settle();
    files.feed("a.txt", {"nonsense"});
    until_said("set a: ");
    EXPECT_TRUE(log.says("found \"nonsense\""));
    EXPECT_TRUE(log.says("with 1 entry stays in force; its sources are asked again in"));
    EXPECT_FALSE(kernel.changed());
    until([this] { return notifier.count("set a: its refresh failed") > 0; });
    files.feed("a.txt", {"192.0.2.1"});
    until_said("set a: its sources answer again");
    EXPECT_EQ(notifier.sent.back(), "STATUS=2 sets in force on eth0");
}

TEST_F(DaemonTest, WhatACycleOrARefreshThrowsEndsThatOnly) {
    start();
    settle();
    const std::string sentence =
        "the cycle broke off, and what was changed before is in force: internal error, please report it: ";
    host.throw_after(1); // the refresh's
    files.feed("a.txt", {"192.0.2.7"});
    until_said(sentence + "as a bug does");
    until([this] { return statistics.record().cycles_failed == 1; });
    until([this] { return daemon->is_idle(); });
    host.throw_after(0);
    files.feed("a.txt", {"192.0.2.8"});
    until_said("set a: the refresh broke off: internal error, please report it: as a bug does");
    files.feed("a.txt", {"192.0.2.9"});
    until_said("set a: a new list with 1 entry");
    // On a thread of the refresh's own.
    until([this] { return daemon->is_idle(); });
    daemon.reset();
    auto sandbox = test::in_process();
    sandbox.run = [&](const ChildOrder& child) -> Result<ChildEnd> {
        if (child_throws.exchange(false)) throw std::runtime_error("as a child's does");
        return test::work_in_process(child);
    };
    auto started =
        Daemon::start(parts(), {.configuration = files.path("c.toml"), .patience = 0ms, .sandbox = sandbox});
    ASSERT_TRUE(started) << started.error().message;
    daemon = std::move(*started);
    settle();
    child_throws = true;
    files.feed("b.txt", {"192.0.2.8"});
    until_said("set b: the refresh broke off: internal error, please report it: as a child's does");
    files.feed("b.txt", {"192.0.2.9"});
    until_said("set b: a new list with 1 entry");
}

// As when there is no memory, or no thread to be had.
TEST_F(DaemonTest, WhatFollowingASetThrowsEndsTheFollowingOnly) {
    start_with_a_live_set();
    settle();
    host.throw_after(0);
    files.feed("live.txt", {"192.0.2.1", "192.0.2.9"});
    until_said("set live: following it broke off, and begins anew: internal error, please report it: as a "
               "bug does");
    until_said("set live: 1 came and 0 went");
}

// No cycle is due for a set that changes in place.
TEST_F(DaemonTest, AProgramThatSomebodyTookOffIsAttachedAgain) {
    start_with_a_live_set();
    settle();
    kernel.once("read hook", [this] { kernel.running = {}; });
    until_said("eth0: attached; in force: live");
}

TEST_F(DaemonTest, AReloadDoesNotWaitForAPipe) {
    start();
    settle();
    std::filesystem::remove(files.path("c.toml"));
    ASSERT_EQ(::mkfifo(files.path("c.toml").c_str(), 0600), 0);
    daemon->reload();
    EXPECT_TRUE(log.says("the one before stays: " + files.path("c.toml") + ": is no regular file"));
    EXPECT_FALSE(try_start());
}

TEST_F(DaemonTest, ATriggerDuringARefreshOrACycleIsNotLost) {
    start();
    settle();
    for (const int read : {1, 2}) { // the refresh's, and the cycle's
        const int reads = host.reads();
        host.hold_from(reads + read);
        files.feed("a.txt", {fmt::format("192.0.2.{}", 10 * read)});
        until([&] { return host.reads() == reads + read; });
        files.feed("a.txt", {"192.0.2.8", fmt::format("192.0.2.{}", 10 * read)});
        files.feed("b.txt", {fmt::format("192.0.2.{}", 10 * read)});
        while (loop.run_once(0ms)) { // the files' events have come
        }
        host.release();
        until_said("set b: a new list with 1 entry");
        until_said("set a: a new list with 2 entries");
        until([this] { return daemon->is_idle() && daemon->refreshes() == 0; });
        log.forget();
    }
}

// Building a long list holds up no other list on this machine, and no new interface.
TEST_F(DaemonTest, ABuildThatLastsDelaysNobodyElse) {
    std::mutex mutex;
    std::condition_variable changed;
    bool held = false, waits = false;
    SandboxSettings sandbox = test::in_process();
    sandbox.run = [&](const ChildOrder& child) -> Result<ChildEnd> {
        SIEVE_ASSIGN(const ConfinedOrder order, read_order(child.message));
        if (std::holds_alternative<BuildOrder>(order.order)) {
            std::unique_lock lock(mutex);
            if (std::exchange(held, false)) {
                waits = true;
                changed.notify_all();
                changed.wait(lock, [&] { return !waits; });
            }
        }
        return test::work_in_process(child);
    };
    configure({}, "eth*");
    auto started =
        Daemon::start(parts(), {.configuration = files.path("c.toml"), .patience = 0ms, .sandbox = sandbox});
    ASSERT_TRUE(started) << started.error().message;
    daemon = std::move(*started);
    settle();
    held = true;
    files.feed("b.txt", {"192.0.2.8", "192.0.2.9", "192.0.2.10"});
    until([&] {
        const std::lock_guard lock(mutex);
        return waits;
    });
    files.feed("a.txt", {"192.0.2.6", "192.0.2.7"});
    until_said("set a: a new list with 2 entries");
    until([this] { return daemon->is_idle(); });
    kernel.running = {};
    daemon->interfaces_changed({.names = {"eth0"}});
    until([this] { return kernel.running.ours && daemon->is_idle(); });
    EXPECT_EQ(kernel.running.table.sets.size(), 2U) << "with the last good list of the set that is built";
    EXPECT_EQ(daemon->refreshes(), 1U);
    EXPECT_FALSE(log.says("set b: "));
    {
        const std::lock_guard lock(mutex);
        waits = false;
        changed.notify_all();
    }
    until_said("set b: a new list with 3 entries (before: 2)");
    daemon.reset();
}

// Of any set on this host, also of one that somebody loaded by hand. No cycle is due meanwhile.
TEST_F(DaemonTest, TakesKeysOutWhoseTimeIsOverBetweenCycles) {
    control::FeedSpec spec;
    spec.build.kind.kind = SIEVE_KIND_DDLCBF;
    spec.build.bits_per_key = 80;
    kernel.put_filter(300, *Image::load(files.image("live", {"192.0.2.1", "192.0.2.2"}, spec)));
    test::FakeKernel::HookContent& egress = kernel.at_tc[kernel::HookPoint::egress];
    egress.ours = true;
    egress.program = 41;
    egress.table.sets.push_back({.name = "live", .map_id = 300, .inserted_id = 400});
    const auto words = std::to_array(parse_key("192.0.2.1", SIEVE_FIELD_SRC)->word);
    kernel.keys[400].notes[words] = {.end =
                                         kernel.now + std::uint64_t{std::chrono::nanoseconds(200ms).count()}};
    start();
    settle();
    const std::uint64_t cycles = daemon->cycles();
    EXPECT_TRUE(kernel.keys.at(400).notes.contains(words));
    kernel.now += std::chrono::nanoseconds(1s).count();
    until_said("eth0: set live: 1 key taken out");
    until([this] { return daemon->is_idle(); });
    EXPECT_TRUE(kernel.keys.at(400).notes.empty());
    EXPECT_EQ(daemon->cycles(), cycles);
}

TEST_F(DaemonTest, AReloadThatIsWrongKeepsWhatWas) {
    start();
    settle();
    notifier.sent.clear();
    configure("on-stop = \"never\"");
    daemon->reload();
    ASSERT_EQ(notifier.sent.size(), 2U);
    EXPECT_NE(notifier.sent[0].find("RELOADING=1\nMONOTONIC_USEC="), std::string::npos);
    EXPECT_NE(notifier.sent[1].find("READY=1\nSTATUS=2 sets in force on eth0; the new configuration was not "
                                    "taken: "),
              std::string::npos);
    EXPECT_TRUE(log.says("the configuration was not taken, and the one before stays: "));
    EXPECT_TRUE(log.says("c.toml:4:"));
    EXPECT_FALSE(kernel.changed());
    // It goes on as before.
    files.feed("b.txt", {"192.0.2.2"});
    until_said("set b: a new list with 1 entry");
}

TEST_F(DaemonTest, AReloadTakesTheNewConfiguration) {
    start();
    settle();
    notifier.sent.clear();
    configure_allowlist();
    ASSERT_EQ(::raise(SIGHUP), 0);
    until([this] { return notifier.count("READY=1") > 0; });
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_DROP);
    ASSERT_EQ(kernel.running.table.sets.size(), 1U);
    EXPECT_EQ(notifier.sent.back(), "READY=1\nSTATUS=1 set in force on eth0");
    // Another state directory takes another start.
    configure();
    std::string text;
    {
        std::ifstream file(files.path("c.toml"));
        text.assign(std::istreambuf_iterator<char>(file), {});
    }
    text.replace(text.find("/state\""), 7, "/other\"");
    std::ofstream(files.path("c.toml")) << text;
    daemon->reload();
    EXPECT_TRUE(log.says("state-directory is now"));
    EXPECT_EQ(daemon->configuration().sets.size(), 1U);
}

// An administrator is connected. Neither a reload nor another start may cut the session off.
TEST_F(DaemonTest, AConfigurationThatLocksAnAdministratorOutIsRefusedAndSeen) {
    start();
    settle();
    host.addresses = {test::host_address("203.0.113.5", "an administrator's session (TCP port 22)")};
    HostAddress& session = host.addresses[0];
    session.role = control::HostRole::session;
    session.interface = "eth0";
    configure_allowlist();
    const auto is_refused = [this] {
        until_said(
            "refused: eth0 xdp: no set lets 203.0.113.5 pass, an administrator's session (TCP port 22), "
            "and the default is drop");
        until([this] { return notifier.count("no set lets 203.0.113.5 pass") > 0; });
        EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_PASS);
        const auto errors = statistics.record().hook_errors;
        ASSERT_EQ(errors.size(), 1U);
        expect_says(errors.begin()->second);
    };
    notifier.sent.clear();
    daemon->reload();
    is_refused();
    until([this] { return daemon->is_idle(); });
    daemon.reset();
    log.forget();
    notifier.sent.clear();
    start();
    is_refused();
}

// However long the host's addresses take.
TEST_F(DaemonTest, ATableInForceStaysUntilTheNextOneHasBeenAsked) {
    start();
    settle();
    daemon.reset();
    log.forget();
    host.addresses = {test::host_address("203.0.113.5", "an administrator's session (TCP port 22)")};
    host.addresses[0].role = control::HostRole::session;
    host.addresses[0].interface = "eth0";
    configure_allowlist();
    const int reads = host.reads();
    host.hold();
    start();
    while (host.reads() < reads + 2) (void)loop.run_once(10ms); // the start's, and then the new table's
    ASSERT_FALSE(kernel.changed());
    host.release();
    until_said("eth0: held back: refused: eth0 xdp: no set lets 203.0.113.5 pass");
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_PASS);
    EXPECT_FALSE(log.says("the start did not wait"));
}

// The list is good, but the filter with it would take the session of an administrator.
TEST_F(DaemonTest, ATableThatTakesASessionIsRefusedByAGuard) {
    start();
    settle();
    host.addresses = {test::host_address("203.0.113.5", "an administrator's session (TCP port 22)")};
    HostAddress& session = host.addresses[0];
    session.role = control::HostRole::session;
    session.ours = test::host_address("192.0.2.254").address;
    session.our_port = 22;
    session.their_port = 50000;
    {
        std::ofstream file(files.path("c.toml"), std::ios::app);
        file << "key = \"src,dport\"\n"; // of set b
    }
    files.feed("b.txt", {"203.0.113.5 22"});
    daemon->reload();
    until_said("set b: eth0 xdp: set b would drop 203.0.113.5, an administrator's session");
    EXPECT_TRUE(log.says("(refused)"));
    EXPECT_FALSE(kernel.changed());
    until([this] { return notifier.count("set b: its new list was refused") > 0; });
    const auto sets = statistics.record().sets;
    EXPECT_EQ(sets.at("b").refusals[static_cast<std::size_t>(Guard::lockout)], 1U);
}

TEST_F(DaemonTest, AReloadCallsRefreshesOff) {
    start();
    settle();
    const int reads = host.reads();
    host.hold();
    files.feed("a.txt", {"nonsense"});
    until([this] { return daemon->refreshes() > 0; });
    host.await_read(reads + 1);
    configure("on-stop = \"unload\"");
    daemon->reload();
    EXPECT_EQ(daemon->configuration().on_stop, OnStop::unload);
    host.release();
    until_said("found \"nonsense\"");
    EXPECT_EQ(log.count("found \"nonsense\""), 1U); // by a refresh of the new configuration
}

TEST_F(DaemonTest, AReloadWaitsForACycle) {
    start();
    settle();
    const int reads = host.reads();
    host.hold_from(reads + 2);
    files.feed("a.txt", {"192.0.2.7"});
    until([&] { return host.reads() == reads + 2; });
    configure("on-stop = \"unload\"");
    daemon->reload();
    EXPECT_EQ(daemon->configuration().on_stop, OnStop::keep); // not under the cycle's feet
    host.release();
    until([this] { return daemon->configuration().on_stop == OnStop::unload; });
}

// A refresh goes by the record of its set, and the cycle that follows a reload gives a renamed set its own.
TEST_F(DaemonTest, AReloadAsksNoSourceBeforeItsCycleHasEnded) {
    std::atomic<bool> held = false, waits = false;
    SandboxSettings sandbox = test::in_process();
    sandbox.run = [&](const ChildOrder& child) {
        while (held) std::this_thread::sleep_for(1ms); // a refresh does not end
        return test::work_in_process(child);
    };
    auto started =
        Daemon::start(parts(), {.configuration = files.path("c.toml"), .patience = 0ms, .sandbox = sandbox});
    ASSERT_TRUE(started) << started.error().message;
    daemon = std::move(*started);
    settle();
    kernel.before("replace", [&](const std::string&) -> Status {
        waits = true;
        while (held) std::this_thread::sleep_for(1ms);
        return {};
    });
    std::ofstream(files.path("c.toml")) << fmt::format(R"([service]
state-directory = "{}"
listen = ""
[[interface]]
name = "eth0"
sets = ["renamed", "b"]
[set.renamed]
sources = ["a.txt"]
[set.b]
sources = ["b.txt"]
)",
                                                       files.path("state"));
    held = true;
    daemon->reload();
    until([&] { return waits.load(); });
    EXPECT_EQ(daemon->refreshes(), 0U);
    held = false;
    until([this] { return daemon->refreshes() > 0; }); // now they are asked
    until([this] { return daemon->refreshes() == 0 && daemon->is_idle(); });
    EXPECT_NE(kernel.running.table.find("renamed"), nullptr);
    daemon.reset();
}

TEST_F(DaemonTest, InterfacesThatTheConfigurationNamesLeadToACycle) {
    configure("", "eth*");
    start();
    settle();
    const std::uint64_t cycles = daemon->cycles();
    const int reads = host.reads();
    daemon->interfaces_changed({.names = {"docker0"}});
    while (loop.run_once(50ms)) { // longer than a trigger is held back
    }
    EXPECT_EQ(daemon->cycles(), cycles);
    daemon->interfaces_changed({.names = {"eth7", "tmp0"}});
    until([&] { return daemon->cycles() == cycles + 1; });
    daemon->interfaces_changed({.everything = true});
    until([&] { return daemon->cycles() == cycles + 2; });
    EXPECT_EQ(host.reads(), reads); // no source was asked, and nothing changed
}

// Its interface was in another network namespace when its entry went, and comes back, with a name that no
// entry has.
TEST_F(DaemonTest, AProgramThatComesBackAfterItsEntryWentIsUnloaded) {
    auto started = Daemon::start(parts(), {.configuration = files.path("c.toml"),
                                           .patience = 0ms,
                                           .backoff = {.first = 24h, .most = 24h},
                                           .sandbox = test::in_process()});
    ASSERT_TRUE(started) << started.error().message;
    daemon = std::move(*started);
    settle();
    kernel.eth0_gone = true;
    configure("", "eth7");
    daemon->reload();
    until_said("eth0: the configuration does not name it any more, and its program runs at no interface");
    until([this] { return daemon->is_idle() && daemon->refreshes() == 0; });
    EXPECT_TRUE(notifier.sent.back().ends_with("; eth0: its program is to be unloaded, and runs elsewhere"))
        << notifier.sent.back();
    kernel.eth0_gone = false;
    daemon->interfaces_changed({.names = {"eth0"}});
    until([this] { return !kernel.running.ours; });
    until_said("eth0: unloaded, since the configuration does not name it any more");
    until([this] { return daemon->is_idle(); });
    EXPECT_EQ(notifier.sent.back().find("elsewhere"), std::string::npos) << notifier.sent.back();
    const std::uint64_t cycles = daemon->cycles();
    daemon->interfaces_changed({.names = {"eth0"}});
    while (loop.run_once(50ms)) { // longer than a trigger is held back
    }
    EXPECT_EQ(daemon->cycles(), cycles) << "nothing is away any more";
}

TEST_F(DaemonTest, AStopKeepsWhatIsInForceOrUnloadsIt) {
    start();
    settle();
    ASSERT_EQ(::raise(SIGTERM), 0);
    ASSERT_TRUE(daemon->run());
    EXPECT_TRUE(kernel.running.ours);
    EXPECT_TRUE(log.says("stopped; what is in force stays in force"));
    EXPECT_EQ(notifier.sent.back(), "STOPPING=1\nSTATUS=stopping");
    daemon.reset();

    loop = EventLoop::make().value();
    configure("on-stop = \"unload\"");
    start();
    settle();
    kernel.eth0_gone = true; // to another network namespace, until the next stop
    daemon->stop();
    ASSERT_TRUE(daemon->run());
    EXPECT_TRUE(log.says("eth0 xdp: is not unloaded"));
    daemon.reset();
    loop = EventLoop::make().value();
    start();
    settle();
    kernel.eth0_gone = false;
    daemon->stop();
    ASSERT_TRUE(daemon->run());
    EXPECT_FALSE(kernel.running.ours);
    EXPECT_TRUE(log.says("eth0 xdp: unloaded"));
    daemon.reset();
    // What is remembered is still there for the next start.
    loop = EventLoop::make().value();
    host.hold();
    start();
    until([this] { return kernel.running.ours; });
}

TEST_F(DaemonTest, AStopDuringACycleWaitsForIt) {
    start();
    settle();
    const int reads = host.reads();
    host.hold_from(reads + 2);
    files.feed("a.txt", {"192.0.2.7"});
    until([&] { return host.reads() == reads + 2; });
    daemon->stop();
    EXPECT_FALSE(daemon->is_idle());
    host.release();
    ASSERT_TRUE(daemon->run());
    EXPECT_TRUE(daemon->is_idle());
}

TEST_F(DaemonTest, WhatIsWrongAtTheStartChangesNothing) {
    std::ofstream(files.path("c.toml")) << "[service]\nstate = 1\n";
    const auto wrong = try_start();
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().kind, ErrorKind::bad_input);
    configure();
    kernel.refuse("load programs", ErrorKind::not_permitted);
    const auto denied = try_start();
    ASSERT_FALSE(denied);
    EXPECT_EQ(denied.error().kind, ErrorKind::not_permitted);
    kernel.allow("load programs");
    start();
    const auto second = try_start();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::busy);
    EXPECT_NE(second.error().message.find(fmt::format("process {}", ::getpid())), std::string::npos);
    EXPECT_FALSE(kernel.changed());
}

TEST_F(DaemonTest, AnotherControllerIsWaitedForAndTheTableTriedAgain) {
    start();
    settle();
    daemon.reset();
    kernel.running = {};
    kernel.refuse("lock", ErrorKind::busy);
    auto started = Daemon::start(parts(), {.configuration = files.path("c.toml"),
                                           .patience = 0ms,
                                           .backoff = {.first = 1ms, .most = 1ms},
                                           .sandbox = test::in_process()});
    ASSERT_TRUE(started);
    daemon = std::move(*started);
    until_said("waiting for process 1 (other) to finish its change");
    until_said("eth0: stays as it is: process 1 (other) is at work");
    kernel.allow("lock");
    until_said("eth0: attached; in force: a, b");
}

} // namespace
} // namespace sieve::service
