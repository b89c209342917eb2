// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/listen.hpp"

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;

class Listen : public testing::Test {
  protected:
    Listen() {
        kernel.put("first");
        kernel.put("second");
    }

    static sieve_event match(std::uint64_t hits, std::uint32_t decision) {
        sieve_event event{};
        event.hits = hits;
        event.decision = decision;
        event.length = 60;
        event.captured = 3;
        event.head[2] = 7;
        return event;
    }
    // Listens for this many rounds.
    Result<Heard> listen_for(int rounds, const ListenOptions& options = {}) {
        const Listener listener{.event =
                                    [&](const Event& event) {
                                        heard.push_back(event);
                                        EXPECT_EQ(event.head.size(), 3U);
                                        EXPECT_EQ(event.head.back(), 7);
                                    },
                                .go_on = [rounds]() mutable -> Result<bool> { return rounds-- > 0; }};
        return listen(kernel, {.interface = "eth0"}, options, listener, {});
    }

    FakeKernel kernel;
    std::vector<Event> heard;
};

TEST_F(Listen, NamesTheSetsThatMatchedAndTheOneThatDecided) {
    kernel.samples = {{match(0b11, 1)}, {match(0b01, SIEVE_NO_SET), match(0b100, 2)}};
    kernel.samples_lost = 4;
    const auto result = listen_for(2, {.sampling = {.sample = 8}});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->events, 3U);
    EXPECT_EQ(result->lost, 4U);
    EXPECT_FALSE(result->taken_over);
    ASSERT_EQ(heard.size(), 3U);
    EXPECT_EQ(heard[0].sets, (std::vector<std::string>{"first", "second"}));
    EXPECT_EQ(heard[0].decided_by, "second");
    EXPECT_EQ(heard[1].sets, (std::vector<std::string>{"first"}));
    EXPECT_FALSE(heard[1].decided_by);
    EXPECT_TRUE(heard[2].sets.empty()) << "the set in slot 2 has left";
    EXPECT_EQ(kernel.steps, (std::vector<std::string>{"lock", "start events", "unlock", "poll", "poll",
                                                      "lock", "stop events", "unlock", "drain"}));
}

TEST_F(Listen, NamesTheSetsWhoseMatchWasRejected) {
    sieve_event rejected = match(0b01, SIEVE_NO_SET);
    rejected.rejected = 0b10;
    kernel.samples = {{rejected, match(0b10, 1)}};
    ASSERT_TRUE(listen_for(1));
    ASSERT_EQ(heard.size(), 2U);
    EXPECT_EQ(heard[0].rejected, (std::vector<std::string>{"second"}));
    EXPECT_EQ(heard[0].sets, (std::vector<std::string>{"first"}));
    EXPECT_TRUE(heard[0].by_default);
    EXPECT_TRUE(heard[1].rejected.empty());
    EXPECT_FALSE(heard[1].by_default);
}

TEST_F(Listen, EndsAfterSoManyEvents) {
    kernel.samples = {{match(1, 0), match(1, 0), match(1, 0)}, {match(1, 0)}};
    const auto result = listen_for(9, {.most = 2});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->events, 2U);
    EXPECT_EQ(heard.size(), 2U);
    EXPECT_EQ(kernel.count("drain"), 0U);
    EXPECT_EQ(kernel.running.watching.sample, 0U);
}

TEST_F(Listen, HandsOverWhatCameUntilSamplingWasOff) {
    kernel.samples = {{match(1, 0)}};
    EXPECT_EQ(listen_for(0)->events, 1U);
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0].decided_by, "first");
}

TEST_F(Listen, SwitchesSamplingOffAfterAnError) {
    kernel.samples = {{match(1, 0)}};
    const auto refused = listen_for(5); // the second poll fails
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "reading events");
    EXPECT_EQ(heard.size(), 1U);
    EXPECT_EQ(kernel.running.watching.sample, 0U);
    // An error of the listener itself, such as a full disk.
    const Listener full{.event = [](const Event&) {},
                        .go_on = []() -> Result<bool> { return bad_input("no room"); }};
    EXPECT_EQ(listen(kernel, {.interface = "eth0"}, {}, full, {}).error().message, "no room");
    EXPECT_EQ(kernel.running.watching.sample, 0U);
}

TEST_F(Listen, LeavesSamplingToTheListenerThatTookOver) {
    kernel.samples = {{match(1, 0)}, {}};
    kernel.taken_over_after = 1;
    const auto result = listen_for(9);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->taken_over);
    EXPECT_EQ(kernel.count("poll"), 1U);
    EXPECT_EQ(kernel.running.watching.sample, 1U);
}

// The program was taken away, another one was attached in its place, or the interface was deleted.
TEST_F(Listen, EndsWhenTheProgramIsGone) {
    for (const auto& leave : std::vector<std::function<void()>>{[&] { kernel.running = {}; },
                                                                [&] { kernel.running.program = 77; },
                                                                [&] { kernel.eth0_gone = true; }}) {
        heard.clear();
        kernel.running = {};
        kernel.eth0_gone = false;
        kernel.steps.clear();
        kernel.put("first");
        kernel.samples = {{match(1, 0)}};
        kernel.samples.resize(1000);
        int rounds = 0;
        const Listener listener{.event = [&](const Event& event) { heard.push_back(event); },
                                .go_on = [&]() -> Result<bool> {
                                    if (++rounds == 30) leave();
                                    return rounds < 100;
                                }};
        const auto result = listen(kernel, {.interface = "eth0"}, {}, listener, {});
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_EQ(heard.size(), 1U);
        EXPECT_GE(rounds, 30);
        EXPECT_LE(rounds, 40) << "a second later at most";
        EXPECT_EQ(kernel.count("stop events"), 1U);
    }
}

TEST_F(Listen, WhereNothingOfOursRuns) {
    kernel.running = {};
    EXPECT_EQ(listen_for(1).error().kind, ErrorKind::not_attached);
    EXPECT_TRUE(kernel.steps.empty());
}

} // namespace
} // namespace sieve::control
