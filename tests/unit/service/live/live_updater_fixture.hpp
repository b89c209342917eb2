// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// An updater whose clock, API and children are the test's.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/service/live/live_updater.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/state/ban_ledger.hpp"
#include "unit/service/in_process.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {

using namespace std::chrono_literals;
using test::entry;
using test::in_process;
using test::LiveWorld;
using test::prefix_of;
using Fetch = SourceSchedule::Fetch;

class LiveUpdaterTest : public testing::Test, public LiveWorld {
  protected:
    Time now{1'000'000s};
    std::vector<LiveEvent> events;
    std::atomic<int> step_soon = 0; // how often step() was asked for
    std::vector<Fetch> asked;
    // Of the machine; nobody sets it. Nothing: the clock is never set either.
    std::optional<std::chrono::milliseconds> uptime;
    // What the API says next; a failure if there is nothing.
    std::optional<Decisions> answer{Decisions{}};
    std::atomic<bool> api_hangs = false; // answer_at_last() ends it
    SandboxSettings sandbox = in_process();
    kernel::HookPoint point = kernel::HookPoint::xdp; // where the set belongs
    bool protect_host = true;                         // of that interface

    Configuration configuration_of(SetConfiguration set) {
        Configuration configuration;
        configuration.state_directory = files.path("state");
        configuration.interfaces = {
            {.name = "eth0", .hook = point, .protect_host = protect_host, .sets = {set.name}}};
        configuration.sets = {std::move(set)};
        return with_range_sets(configuration).value();
    }
    std::unique_ptr<LiveUpdater> open(const SetConfiguration& set) {
        LiveUpdaterSettings settings;
        settings.configuration = configuration_of(set);
        settings.set = set.name;
        settings.sandbox = sandbox;
        settings.tell = [this](const LiveEvent& event) { events.push_back(event); };
        settings.step_soon = [this] {
            step_soon++;
            step_soon.notify_all();
        };
        settings.now = [this] { return now; };
        if (uptime) settings.uptime = [this] { return *uptime; };
        settings.fetch = [this](const CrowdsecSpec&, Fetch ask, Time,
                                const SandboxSettings&) -> tl::expected<Decisions, GatherFailure> {
            asked.push_back(ask);
            api_hangs.wait(true);
            if (!answer)
                return tl::unexpected(GatherFailure{{ErrorKind::bad_input, "the API is away", {}}, {}});
            return *answer;
        };
        auto updater = LiveUpdater::open(std::move(settings), kernel, state, host);
        if (!updater) throw std::runtime_error(updater.error().message);
        if (service::followed_stream(set) == nullptr) settle(**updater); // the first steps read the files
        return std::move(*updater);
    }
    // Until it has nothing to do at this moment.
    Time settle(LiveUpdater& updater) {
        for (;;) {
            const Time next = updater.step();
            if (next <= now) continue;
            if (!updater.state().at_work) return next;
            std::this_thread::sleep_for(1ms); // another thread is at work
        }
    }
    // Takes what the API says, and does nothing that is due after that.
    void step_with_answer(LiveUpdater& updater) {
        const int before = step_soon;
        updater.step();
        step_soon.wait(before);
        updater.step();
    }
    void answer_at_last() {
        api_hangs = false;
        api_hangs.notify_all();
    }
    // A member and a prefix come into force, and then the updater ends.
    void keep_for_a_while() {
        const auto updater = open(stream_set());
        put_in_force();
        put_in_force("block-ranges");
        answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h), entry("198.51.100.0/24", 2, now + 1h)}};
        settle(*updater);
    }
    // Nothing in force changes.
    std::unique_ptr<LiveUpdater> open_while_the_api_is_away() {
        const std::string identity = identity_in_force();
        const std::uint32_t ranges = map_id("block-ranges");
        answer.reset();
        auto updater = open(stream_set());
        settle(*updater);
        EXPECT_EQ(identity_in_force(), identity);
        EXPECT_TRUE(in_force_has("192.0.2.1"));
        EXPECT_EQ(map_id("block-ranges"), ranges);
        return updater;
    }
    [[nodiscard]] const LiveEvent* last(LiveEvent::What what) const {
        for (auto event = events.rbegin(); event != events.rend(); ++event)
            if (event->what == what) return &*event;
        return nullptr;
    }
    [[nodiscard]] std::uint64_t ranges_in_force() {
        return kernel.open_filter(map_id("block-ranges")).value()->file().keys;
    }
};

class BansKeeperTest : public LiveUpdaterTest {
  protected:
    BanLedger ledger{files.path("state"), "block"};

    static SetConfiguration ban_set() {
        SetConfiguration set = stream_set();
        set.sources = {BanSpec{}};
        return set;
    }
    static BanChange ban(const std::string& address, Time until = never) {
        return {.prefix = test::prefix_of(address), .ban = {.until = until}};
    }
    static BanChange unban(const std::string& address) {
        return {.step = BanStep::remove, .prefix = test::prefix_of(address)};
    }
    void change(const std::vector<BanChange>& changes, LiveUpdater& updater) {
        const Status appended = ledger.append(changes);
        ASSERT_TRUE(appended) << appended.error().message;
        updater.wake();
        settle(updater);
    }
    std::unique_ptr<LiveUpdater> in_force() {
        auto updater = open(ban_set());
        put_in_force();
        put_in_force("block-ranges");
        settle(*updater);
        return updater;
    }
};

} // namespace sieve::service::live
