// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Limits on a set's matches, in the kernel. Time is made by moving the set's account, not by waiting.
#include <linux/bpf.h>

#include <thread>
#include <vector>

#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/packet.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve {
namespace {

using namespace test;
using kernel::WantedSet;

// One packet per second: few pass by chance while a test runs.
constexpr std::uint32_t slow = 1;

class LimitTest : public ::testing::TestWithParam<kernel::HookPoint> {
  protected:
    void SetUp() override { scratch_ = &shared_program(GetParam()); }

    [[nodiscard]] Status put(std::vector<WantedSet> sets,
                             sieve_action default_action = SIEVE_ACTION_PASS) const {
        return scratch_->table().replace({.default_action = default_action, .sets = std::move(sets)});
    }

    [[nodiscard]] bool passes(const std::string& source) const {
        const auto verdict =
            scratch_->run((Ethernet{} / IPv4{.src = source} / Udp{} / Payload{.bytes = 18}).bytes());
        EXPECT_TRUE(verdict) << verdict.error().message;
        return verdict.value_or(XDP_ABORTED) == XDP_PASS;
    }

    [[nodiscard]] std::uint32_t passed_of(std::uint32_t packets,
                                          const std::string& source = "10.0.0.1") const {
        std::uint32_t passed = 0;
        for (std::uint32_t i = 0; i < packets; i++) passed += passes(source);
        return passed;
    }

    [[nodiscard]] std::uint32_t slot_of(const std::string& name) const {
        const auto table = scratch_->table().read();
        const kernel::SetInForce* set = table.find(name);
        EXPECT_NE(set, nullptr);
        return set != nullptr ? set->slot : 0;
    }

    // The bucket then holds what comes in `seconds` and a half more, if its depth allows.
    void refill(const std::string& name, double seconds) const {
        const std::uint64_t past = static_cast<std::uint64_t>((seconds + 0.5) * SIEVE_LIMIT_TICKS_PER_SECOND);
        const sieve_account account{.spent = sieve_limit_now(program_now()) - past, .reserved = {}};
        const UniqueFd accounts = value_or_fail(kernel::open_map(scratch_->instance().rare().accounts));
        const std::uint32_t slot = slot_of(name);
        ASSERT_EQ(bpf_map_update_elem(accounts.get(), &slot, &account, BPF_ANY), 0);
    }

    kernel::Scratch* scratch_ = nullptr;
};

// A packet more may pass for each second that the test takes.
#define EXPECT_PASSED(wanted, passed, since)                                                                 \
    do {                                                                                                     \
        const std::uint32_t count = (passed);                                                                \
        EXPECT_GE(count, wanted);                                                                            \
        EXPECT_LE(count, wanted + 1 + (program_now() - (since)) / 1'000'000'000);                            \
    } while (0)

TEST_P(LimitTest, LetsABurstThroughAndDropsTheRest) {
    const auto map = map_of(image_of({"10.0.0.1", "10.0.0.2"}));
    ASSERT_TRUE(put(
        {{.name = "odd", .action = SIEVE_ACTION_LIMIT, .map_fd = map.fd(), .target = slow, .burst = 20}}));
    std::uint64_t since = program_now();
    const std::uint32_t passed = passed_of(100);
    EXPECT_PASSED(20U, passed, since);
    EXPECT_EQ(passed_of(50, "10.0.0.9"), 50U) << "a non-member has no limit";
    const kernel::Stats stats = value_or_fail(kernel::read_stats(scratch_->instance()));
    const std::uint32_t slot = slot_of("odd");
    EXPECT_EQ(stats.hit[slot].packets, 100U);
    EXPECT_EQ(stats.over[slot].packets, 100U - passed);
    EXPECT_EQ(stats.over[slot].bytes * 100, stats.hit[slot].bytes * (100U - passed));
    EXPECT_EQ(stats.dropped.packets, 100U - passed);
    EXPECT_EQ(scratch_->trace().decision, SIEVE_NO_SET);

    // Both members share the bucket. Seven seconds later, seven more pass, and after a day no more than the
    // burst.
    refill("odd", 7);
    since = program_now();
    EXPECT_PASSED(7U, passed_of(5) + passed_of(30, "10.0.0.2"), since);
    EXPECT_EQ(scratch_->trace().decision, slot) << "the set decides";
    refill("odd", 86'400);
    since = program_now();
    EXPECT_PASSED(20U, passed_of(100), since);
}

TEST_P(LimitTest, AFastLimitTakesSeveralPacketsAtOnce) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    constexpr std::uint32_t rate = 1'000'000;
    const sieve_limit limit = sieve_limit_of(rate, 300);
    ASSERT_EQ(limit.step, 15U);
    ASSERT_TRUE(put(
        {{.name = "odd", .action = SIEVE_ACTION_LIMIT, .map_fd = map.fd(), .target = rate, .burst = 300}}));
    const std::uint64_t since = program_now();
    const std::uint32_t passed = passed_of(2000);
    const std::uint64_t nanoseconds = program_now() - since + 20'000'000; // and the coarse clock's step
    EXPECT_GE(passed, 300U);
    EXPECT_LE(passed, 300 + 15 + nanoseconds / 1000);
}

// Threads on all CPUs at once: the account is shared, and no packet passes twice on one token.
TEST_P(LimitTest, AllCpusShareTheBucket) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    ASSERT_TRUE(put(
        {{.name = "odd", .action = SIEVE_ACTION_LIMIT, .map_fd = map.fd(), .target = slow, .burst = 500}}));
    const std::uint64_t since = program_now();
    std::vector<std::uint32_t> passed(4);
    std::vector<std::thread> threads;
    for (std::uint32_t& mine : passed) threads.emplace_back([&mine, this] { mine = passed_of(1000); });
    for (std::thread& thread : threads) thread.join();
    std::uint32_t sum = 0;
    for (const std::uint32_t one : passed) sum += one;
    EXPECT_PASSED(500U, sum, since);
}

// The first match decides. Up to its limit a set's packets take the default, and no later set sees them.
TEST_P(LimitTest, DecidesInItsPlaceInTheOrder) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    const WantedSet odd{
        .name = "odd", .action = SIEVE_ACTION_LIMIT, .map_fd = map.fd(), .target = slow, .burst = 3};
    ASSERT_TRUE(put({{.name = "seen", .action = SIEVE_ACTION_COUNT, .map_fd = map.fd()},
                     odd,
                     {.name = "bad", .action = SIEVE_ACTION_DROP, .map_fd = map.fd()}}));
    const std::uint64_t since = program_now();
    EXPECT_PASSED(3U, passed_of(10), since);
    const kernel::Stats stats = value_or_fail(kernel::read_stats(scratch_->instance()));
    EXPECT_EQ(stats.hit[slot_of("seen")].packets, 10U);
    EXPECT_EQ(stats.hit[slot_of("odd")].packets, 10U);
    EXPECT_EQ(stats.hit[slot_of("bad")].packets, 0U);
    ASSERT_TRUE(put({{.name = "bad", .action = SIEVE_ACTION_DROP, .map_fd = map.fd()}, odd}));
    EXPECT_EQ(passed_of(10), 0U);
}

// A change of other things leaves the bucket as it is. A set that comes finds a full one, whoever had the
// slot.
TEST_P(LimitTest, ABucketBelongsToItsSet) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    const WantedSet odd{
        .name = "odd", .action = SIEVE_ACTION_LIMIT, .map_fd = map.fd(), .target = slow, .burst = 10};
    ASSERT_TRUE(put({odd}));
    std::uint64_t since = program_now();
    EXPECT_PASSED(10U, passed_of(20), since);
    ASSERT_TRUE(put({{.name = "more", .action = SIEVE_ACTION_DROP, .map_fd = map.fd()}, odd}));
    ASSERT_TRUE(put({odd}));
    EXPECT_PASSED(0U, passed_of(20), since);
    const kernel::SetInForce before = *scratch_->table().read().find("odd");
    EXPECT_EQ(before.target, slow);
    EXPECT_EQ(before.burst, 10U);

    std::vector<std::uint32_t> slots;
    for (int round = 0; round < 3; round++) { // each slot comes again
        ASSERT_TRUE(put({}));
        ASSERT_TRUE(put({odd}));
        since = program_now();
        const auto passed = passed_of(20);
        EXPECT_PASSED(10U, passed, since);
        const kernel::SetInForce now = *scratch_->table().read().find("odd");
        const kernel::Stats stats = value_or_fail(kernel::read_stats(scratch_->instance()));
        EXPECT_EQ(kernel::difference(stats.hit[now.slot], now.baseline).packets, 20U);
        EXPECT_EQ(kernel::difference(stats.over[now.slot], now.over_baseline).packets, 20U - passed);
    }
}

TEST_P(LimitTest, SenselessLimitsAreRefused) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    const auto refused = [&](std::uint32_t rate, std::uint32_t burst,
                             sieve_action by_default = SIEVE_ACTION_PASS) {
        const Status done = put({{.name = "odd",
                                  .action = SIEVE_ACTION_LIMIT,
                                  .map_fd = map.fd(),
                                  .target = rate,
                                  .burst = burst}},
                                by_default);
        return !done && done.error().kind == ErrorKind::invalid_request;
    };
    EXPECT_TRUE(refused(0, 1));
    EXPECT_TRUE(refused(1, 0));
    EXPECT_TRUE(refused(SIEVE_LIMIT_MOST_RATE + 1, 1));
    EXPECT_TRUE(refused(1, SIEVE_LIMIT_MOST_SECONDS + 1));
    EXPECT_TRUE(refused(10, 10, SIEVE_ACTION_DROP)) << "then every match would be dropped";
    EXPECT_FALSE(refused(SIEVE_LIMIT_MOST_RATE, 0xffffffff));
    EXPECT_FALSE(refused(1, SIEVE_LIMIT_MOST_SECONDS));
}

INSTANTIATE_TEST_SUITE_P(Hooks, LimitTest,
                         ::testing::Values(kernel::HookPoint::xdp, kernel::HookPoint::ingress,
                                           kernel::HookPoint::egress),
                         [](const auto& hook) { return kernel::hook_point_name(hook.param); });

} // namespace
} // namespace sieve
