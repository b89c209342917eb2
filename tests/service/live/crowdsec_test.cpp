// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Decisions of a real crowdsec, from `cscli` to dropped packets.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "libsieve/control/real_kernel.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/service/live/live_updater.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/sources/fetch_decisions.hpp"
#include "libsieve/service/sources/usage_metrics.hpp"
#include "service/live/crowdsec_server.hpp"
#include "service/servers.hpp"

namespace sieve::service::live {
namespace {

using test::await;
using test::Crowdsec;
using test::Folder;
using Fetch = SourceSchedule::Fetch;

SandboxSettings sandbox() {
    SandboxSettings settings = test::quick_settings();
    settings.user = find_sandbox_user("nobody").value();
    return settings;
}

class CrowdsecTest : public testing::Test {
  protected:
    void SetUp() override {
        if (Crowdsec::unpacked().empty()) GTEST_SKIP() << "no crowdsec: scripts/install-deps.sh unpacks it";
        crowdsec.emplace();
    }
    Decisions fetch(Fetch ask) {
        auto decisions = fetch_decisions(crowdsec->source(), ask, current_time(), sandbox());
        if (!decisions) throw std::runtime_error(decisions.error().error.message);
        return std::move(*decisions);
    }
    std::string failure_of(const CrowdsecSpec& source) {
        const auto decisions = fetch_decisions(source, Fetch::whole_list, current_time(), sandbox());
        return decisions ? "no failure" : decisions.error().error.message;
    }
    static bool has(const std::vector<TimedEntry>& timed_entries, const std::string& text) {
        return std::any_of(timed_entries.begin(), timed_entries.end(), [&](const TimedEntry& timed_entry) {
            return prefix_text(timed_entry.prefix) == text;
        });
    }
    std::optional<Crowdsec> crowdsec;
};

TEST_F(CrowdsecTest, TheStreamBringsWhatCscliDoes) {
    EXPECT_TRUE(fetch(Fetch::whole_list).added.empty());
    crowdsec->cscli("decisions add --ip 192.0.2.1 --duration 1h");
    crowdsec->cscli("decisions add --range 198.51.100.0/24");
    crowdsec->cscli("decisions add --ip 2001:db8::7");
    crowdsec->cscli("decisions add --scope Country --value DE");
    crowdsec->cscli("decisions add --ip 192.0.2.2 --type captcha");
    Decisions decisions = fetch(Fetch::difference);
    EXPECT_EQ(decisions.added.size(), 3U);
    EXPECT_TRUE(has(decisions.added, "192.0.2.1"));
    EXPECT_TRUE(has(decisions.added, "198.51.100.0/24"));
    EXPECT_TRUE(has(decisions.added, "2001:db8::7"));
    for (const TimedEntry& timed_entry : decisions.added) {
        EXPECT_GT(timed_entry.until, current_time() + std::chrono::minutes(50));
        EXPECT_LT(timed_entry.until, current_time() + std::chrono::hours(5));
    }
    EXPECT_EQ(decisions.ignored, 1U); // the captcha; the API itself leaves out the country
    EXPECT_TRUE(fetch(Fetch::difference).added.empty());
    crowdsec->cscli("decisions delete --ip 192.0.2.1");
    decisions = fetch(Fetch::difference);
    EXPECT_TRUE(decisions.added.empty());
    EXPECT_TRUE(has(decisions.deleted, "192.0.2.1"));
    EXPECT_EQ(fetch(Fetch::whole_list).added.size(), 2U);
}

// With the same address banned twice, each decision is told, and so is the end of each.
TEST_F(CrowdsecTest, EveryDecisionIsToldEvenBehindALongerOne) {
    crowdsec->cscli("decisions add --ip 192.0.2.1 --duration 8h");
    crowdsec->cscli("decisions add --ip 192.0.2.1 --duration 1h");
    const Decisions decisions = fetch(Fetch::whole_list);
    ASSERT_EQ(decisions.added.size(), 2U);
    EXPECT_NE(decisions.added[0].id, decisions.added[1].id);
}

TEST_F(CrowdsecTest, FailuresAreToldInOneSentence) {
    CrowdsecSpec source = crowdsec->source();
    crowdsec->folder().write("wrong", "fedcba\n");
    ::chmod(crowdsec->folder().path("wrong").c_str(), 0600);
    source.key_file = crowdsec->folder().path("wrong");
    EXPECT_NE(failure_of(source).find("answered 403 Forbidden, expected 200: it does not know the key"),
              std::string::npos)
        << failure_of(source);
    EXPECT_EQ(failure_of(source).find("fedcba"), std::string::npos);
    ::chmod(source.key_file.c_str(), 0644);
    EXPECT_NE(failure_of(source).find("others may read or write it"), std::string::npos)
        << failure_of(source);
    source = crowdsec->source();
    source.url += "/elsewhere";
    EXPECT_NE(failure_of(source).find("404"), std::string::npos) << failure_of(source);
    crowdsec->kill();
    EXPECT_NE(failure_of(crowdsec->source()).find("onnect"), std::string::npos)
        << failure_of(crowdsec->source());
}

// This version takes none.
TEST_F(CrowdsecTest, UsageMetricsNeedALaterVersion) {
    const Status sent = send_usage_metrics(crowdsec->source(), {}, sandbox());
    ASSERT_FALSE(sent);
    EXPECT_NE(sent.error().message.find("/v1/usage-metrics: the server answered 404 Not Found, expected 201: "
                                        "CrowdSec takes usage metrics from version 1.6.3 on"),
              std::string::npos)
        << sent.error().message;
}

// As LAPI 1.7 answers.
TEST(CrowdsecUsageMetrics, AreSentWithTheKey) {
    const test::Folder folder;
    folder.write("key", "k3y\n");
    ::chmod(folder.path("key").c_str(), 0600);
    std::string request;
    const test::ScriptedServer server([&](int connection, const std::string& head) {
        request = head;
        for (char bytes[4096]; request.find("]}") == std::string::npos;) {
            const ssize_t got = ::read(connection, bytes, sizeof(bytes));
            if (got <= 0) break;
            request.append(bytes, static_cast<std::size_t>(got));
        }
        test::send_all(connection, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    });
    const CrowdsecSpec source{.url = server.url("/"), .key_file = folder.path("key")};
    const Status sent = send_usage_metrics(source, {.items = {{"dropped", "packet", 7, "CAPI"}}}, sandbox());
    ASSERT_TRUE(sent) << sent.error().message;
    for (const char* part : {"POST /v1/usage-metrics HTTP/1.1\r\n", "X-Api-Key: k3y\r\n",
                             "Content-Type: application/json\r\n", R"("origin":"CAPI")", R"("value":7)"})
        EXPECT_NE(request.find(part), std::string::npos) << part << "\n" << request;
}

TEST(CrowdsecByHttps, TrustsItsAuthorityOnly) {
    if (Crowdsec::unpacked().empty()) GTEST_SKIP() << "no crowdsec: scripts/install-deps.sh unpacks it";
    const Crowdsec crowdsec(true);
    CrowdsecSpec source = crowdsec.source();
    auto decisions = fetch_decisions(source, Fetch::whole_list, current_time(), sandbox());
    EXPECT_TRUE(decisions) << decisions.error().error.message;
    source.access.server.certificates.clear();
    decisions = fetch_decisions(source, Fetch::whole_list, current_time(), sandbox());
    ASSERT_FALSE(decisions);
    EXPECT_NE(decisions.error().error.message.find("certificate"), std::string::npos)
        << decisions.error().error.message;
}

// A client's certificate takes the place of a key, if the API lets its unit be a bouncer.
TEST(CrowdsecByHttps, KnowsABouncerByItsCertificate) {
    if (Crowdsec::unpacked().empty()) GTEST_SKIP() << "no crowdsec: scripts/install-deps.sh unpacks it";
    const Crowdsec crowdsec(true);
    CrowdsecSpec source = crowdsec.source();
    source.key_file.clear();
    source.access.server = crowdsec.client("sieve-bouncers");
    auto decisions = fetch_decisions(source, Fetch::whole_list, current_time(), sandbox());
    EXPECT_TRUE(decisions) << decisions.error().error.message;
    for (const ServerAccess& stranger : {crowdsec.client("sieve-agents"), crowdsec.client("others"),
                                         ServerAccess{crowdsec.authority(), "", ""}}) {
        source.access.server = stranger;
        decisions = fetch_decisions(source, Fetch::whole_list, current_time(), sandbox());
        ASSERT_FALSE(decisions) << stranger.client_certificate;
        EXPECT_NE(decisions.error().error.message.find(
                      "answered 403, expected 200: it does not take the client certificate"),
                  std::string::npos)
            << decisions.error().error.message;
    }
}

// Whether a packet from this address of the loopback network arrives. A packet that is never dropped follows
// it, so that nothing has to be waited for.
class Probe {
  public:
    Probe() : receiver_(socket_at("127.0.0.1")) {
        socklen_t length = sizeof(to_);
        if (::getsockname(receiver_.get(), reinterpret_cast<sockaddr*>(&to_), &length) != 0)
            throw std::runtime_error("getsockname");
    }
    [[nodiscard]] bool arrives(const std::string& from) {
        const std::string number = std::to_string(++number_);
        send("127.0.0.1" == from ? "" : from, "probe " + number);
        send("127.0.0.1", "end " + number);
        bool arrived = false;
        for (;;) {
            char text[64] = {};
            pollfd ready{receiver_.get(), POLLIN, 0};
            if (::poll(&ready, 1, 60'000) != 1) throw std::runtime_error("no packet arrives any more");
            const ssize_t got = ::recv(receiver_.get(), text, sizeof(text) - 1, 0);
            const std::string packet(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
            if (packet == "probe " + number) arrived = true;
            if (packet == "end " + number) return arrived;
        }
    }

  private:
    static UniqueFd socket_at(const std::string& address) {
        UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_in at{};
        at.sin_family = AF_INET;
        ::inet_pton(AF_INET, address.c_str(), &at.sin_addr);
        if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0)
            throw std::runtime_error("bind " + address);
        return socket;
    }
    void send(const std::string& from, const std::string& text) const {
        const UniqueFd sender = socket_at(from);
        (void)::sendto(sender.get(), text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&to_),
                       sizeof(to_));
    }
    UniqueFd receiver_;
    sockaddr_in to_{};
    int number_ = 0;
};

// A live set in force on loopback, kept by a thread as a daemon does it.
class InForce {
  public:
    explicit InForce(const CrowdsecSpec& source) {
        SetConfiguration set;
        set.name = "block";
        set.sources = {source};
        set.feed.build.kind.kind = SIEVE_KIND_DDLCBF;
        set.feed.build.trials = 1000;
        Configuration configuration;
        configuration.sets = {set};
        configuration.interfaces = {{.name = "lo", .mode = kernel::ModeChoice::skb, .sets = {"block"}}};
        configuration_ = with_range_sets(std::move(configuration)).value();
        LiveUpdaterSettings settings;
        settings.configuration = configuration_;
        settings.set = "block";
        settings.sandbox = sandbox();
        settings.exclusive = &exclusive_;
        settings.tell = [this](const LiveEvent& event) {
            const std::lock_guard lock(events_mutex_);
            events_.push_back(event);
        };
        settings.step_soon = [this] {
            const std::lock_guard lock(waiting_mutex_);
            woken_ = true;
            waiting_.notify_all();
        };
        auto updater = LiveUpdater::open(std::move(settings), kernel_, state_, host_);
        if (!updater) throw std::runtime_error(updater.error().message);
        updater_ = std::move(*updater);
        CycleOptions options;
        options.ask = Ask::nothing;
        const std::lock_guard lock(exclusive_);
        auto cycle = run_cycle(cycle_kernel_, configuration_, state_, host_, options, {});
        if (!cycle) throw std::runtime_error(cycle.error().message);
        for (const HookReport& hook : cycle->hooks)
            if (hook.error) throw std::runtime_error(hook.error->message);
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    ~InForce() {
        thread_.request_stop();
        waiting_.notify_all();
        thread_.join();
        for (const kernel::Interface& interface : kernel::all_interfaces())
            if (const auto hook = kernel::read_hook(interface); hook && hook->ours)
                (void)kernel::detach(*hook);
    }
    [[nodiscard]] LiveUpdater::State state() const { return updater_->state(); }
    [[nodiscard]] std::string failures() {
        const std::lock_guard lock(events_mutex_);
        std::string text;
        for (const LiveEvent& event : events_)
            if (event.error) text += event.error->message + "\n";
        return text;
    }

  private:
    using Ask = service::Ask;
    void run(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            const Time next = updater_->step();
            std::unique_lock lock(waiting_mutex_);
            waiting_.wait_for(lock, stop,
                              std::min<Time::duration>(next - current_time(), std::chrono::hours(1)),
                              [this] { return std::exchange(woken_, false); });
        }
    }

    Folder folder_;
    StateDirectory state_ = StateDirectory::open(folder_.path("state"), std::chrono::seconds(1), {}).value();
    control::RealKernel kernel_;
    control::RealKernel cycle_kernel_;
    RealHostAddresses host_;
    Configuration configuration_;
    std::mutex exclusive_;
    std::mutex events_mutex_;
    std::vector<LiveEvent> events_;
    std::mutex waiting_mutex_;
    std::condition_variable_any waiting_;
    bool woken_ = false;
    std::unique_ptr<LiveUpdater> updater_;
    std::jthread thread_;
};

class CrowdsecPacketsTest : public CrowdsecTest {
  protected:
    void SetUp() override {
        CrowdsecTest::SetUp();
        if (IsSkipped()) return;
        in_force.emplace(crowdsec->source());
        ASSERT_TRUE(await([&] { return in_force->state().in_step; })) << in_force->failures();
    }
    [[nodiscard]] bool dropped_soon(const std::string& address) {
        return await([&] { return !probe.arrives(address); });
    }
    [[nodiscard]] bool passes_soon(const std::string& address) {
        return await([&] { return probe.arrives(address); });
    }
    std::optional<InForce> in_force;
    Probe probe;
};

TEST_F(CrowdsecPacketsTest, ADecisionDropsAndItsDeletionLetsPass) {
    ASSERT_TRUE(probe.arrives("127.0.0.9"));
    crowdsec->cscli("decisions add --ip 127.0.0.9");
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(dropped_soon("127.0.0.9")) << in_force->failures();
    const auto dropped = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(probe.arrives("127.0.0.10"));
    crowdsec->cscli("decisions delete --ip 127.0.0.9");
    const auto deleted = std::chrono::steady_clock::now();
    ASSERT_TRUE(passes_soon("127.0.0.9")) << in_force->failures();
    const auto passed = std::chrono::steady_clock::now() - deleted;
    const auto ms = [](auto span) {
        return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
    };
    std::printf("[ FIGURE   ] dropped %lld ms after cscli returned, passed %lld ms after; poll 1000 ms\n",
                static_cast<long long>(ms(dropped)), static_cast<long long>(ms(passed)));
}

TEST_F(CrowdsecPacketsTest, ARangeDropsAllOfIt) {
    crowdsec->cscli("decisions add --range 127.9.0.0/16");
    ASSERT_TRUE(dropped_soon("127.9.4.2")) << in_force->failures();
    EXPECT_FALSE(probe.arrives("127.9.255.1"));
    EXPECT_TRUE(probe.arrives("127.8.0.1"));
    crowdsec->cscli("decisions delete --range 127.9.0.0/16");
    EXPECT_TRUE(passes_soon("127.9.4.2")) << in_force->failures();
}

TEST_F(CrowdsecPacketsTest, WhileTheApiIsAwayDecisionsStayAndEnd) {
    crowdsec->cscli("decisions add --ip 127.0.0.9 --duration 6s");
    crowdsec->cscli("decisions add --ip 127.0.0.10 --duration 1h");
    ASSERT_TRUE(dropped_soon("127.0.0.10")) << in_force->failures();
    crowdsec->kill();
    ASSERT_TRUE(await([&] { return !in_force->state().in_step; }));
    EXPECT_TRUE(passes_soon("127.0.0.9")); // it has ended
    EXPECT_FALSE(probe.arrives("127.0.0.10"));
    // It comes back and has forgotten nothing.
    crowdsec->start();
    ASSERT_TRUE(await([&] { return in_force->state().in_step; })) << in_force->failures();
    EXPECT_FALSE(probe.arrives("127.0.0.10"));
    EXPECT_TRUE(probe.arrives("127.0.0.9"));
    crowdsec->cscli("decisions delete --ip 127.0.0.10");
    EXPECT_TRUE(passes_soon("127.0.0.10")) << in_force->failures();
}

} // namespace
} // namespace sieve::service::live
