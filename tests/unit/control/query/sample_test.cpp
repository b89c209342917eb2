// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/sample.hpp"

#include "libsieve/control/query/reset_counters.hpp"

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;

class Samples : public testing::Test {
  protected:
    Samples() {
        const std::string image = files.image("list", {"192.0.2.1", "192.0.2.2"});
        for (const bool verified : {false, true}) {
            kernel::SetInForce& set = kernel.put(verified ? "exact" : "plain", SIEVE_ACTION_DROP, verified);
            kernel.put_filter(set.map_id, Image::load(image).value());
            set.baseline = {.packets = 10, .bytes = 1000};
            set.verified_baseline = {.non_members = 5, .avoided = 1};
        }
        kernel::Stats& stats = kernel.running.stats;
        stats.hit[0] = {.packets = 17, .bytes = 1700};
        stats.hit[1] = {.packets = 12, .bytes = 1200};
        stats.verified[1] = {.non_members = 105, .avoided = 3};
        stats.passed = {.packets = 100, .bytes = 10000};
        stats.dropped = {.packets = 20, .bytes = 2000};
        stats.redirected = {.packets = 3, .bytes = 300};
    }

    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};
};

TEST_F(Samples, AreRelativeToEachSetsBaseline) {
    const auto samples = take_samples(kernel, eth0);
    ASSERT_TRUE(samples) << samples.error().message;
    ASSERT_EQ(samples->size(), 1U);
    const Sample& sample = samples->front();
    EXPECT_EQ(sample.interface, "eth0");
    EXPECT_EQ(sample.program_id, 40U);
    EXPECT_EQ(sample.seen().packets, 123U);
    EXPECT_EQ(sample.seen().bytes, 12300U);
    const SetStatus& plain = sample.table.sets[0];
    const SetStatus& exact = sample.table.sets[1];
    EXPECT_EQ(sample.hits(plain).packets, 7U);
    EXPECT_EQ(sample.hits(plain).bytes, 700U);
    EXPECT_EQ(sample.hits(exact).packets, 2U);
    EXPECT_FALSE(sample.verified(plain));
    const auto verified = sample.verified(exact);
    ASSERT_TRUE(verified);
    EXPECT_EQ(verified->counted.non_members, 100U);
    EXPECT_EQ(verified->counted.avoided, 2U);
    EXPECT_DOUBLE_EQ(verified->rate(), 0.02);
    EXPECT_DOUBLE_EQ(verified->expected_rate, rate_from_bits(exact.filter.file.expected_fpr));
    EXPECT_EQ(Verified{}.rate(), 0);
    EXPECT_EQ(kernel.count("lock"), 0U) << "reading takes no lock";
}

TEST_F(Samples, OfEachHook) {
    kernel.at_tc[kernel::HookPoint::egress] = {.ours = true, .program = 44, .table = {}};
    kernel.at_tc[kernel::HookPoint::egress].stats.dropped = {.packets = 9, .bytes = 90};
    kernel.more_interfaces = {"eth1", "gone"};
    const auto samples = take_samples(kernel, {});
    ASSERT_TRUE(samples) << samples.error().message;
    ASSERT_EQ(samples->size(), 2U);
    EXPECT_EQ((*samples)[0].point, kernel::HookPoint::xdp);
    EXPECT_EQ((*samples)[1].point, kernel::HookPoint::egress);
    EXPECT_EQ((*samples)[1].seen().packets, 9U);
}

TEST_F(Samples, WithoutAProgramOfOurs) {
    kernel.running = {};
    EXPECT_TRUE(take_samples(kernel, {})->empty());
    EXPECT_EQ(take_samples(kernel, eth0).error().kind, ErrorKind::not_attached);
    kernel.running = {.ours = true, .other_version = true, .program = 5, .table = {}};
    EXPECT_TRUE(take_samples(kernel, {})->empty());
    EXPECT_EQ(take_samples(kernel, eth0).error().kind, ErrorKind::other_version);
}

class SampleRates : public Samples {
  protected:
    std::vector<Sample> take(int seconds) {
        std::vector<Sample> samples = take_samples(kernel, eth0).value();
        samples.front().at = std::chrono::steady_clock::time_point(std::chrono::seconds(seconds));
        return samples;
    }
};

TEST_F(SampleRates, AreGrowthASecond) {
    const std::vector<Sample> before = take(10);
    kernel.running.stats.passed.packets += 40;
    kernel.running.stats.passed.bytes += 4000;
    kernel.running.stats.dropped.packets += 10;
    kernel.running.stats.hit[0].packets += 8;
    kernel.running.stats.hit[0].bytes += 100;
    const Sample now = take(14).front();
    const auto rates = rates_since(before, now);
    ASSERT_TRUE(rates);
    EXPECT_DOUBLE_EQ(rates->seen.packets, 12.5);
    EXPECT_DOUBLE_EQ(rates->seen.bits, 8000);
    EXPECT_DOUBLE_EQ(rates->passed.packets, 10);
    EXPECT_DOUBLE_EQ(rates->dropped.packets, 2.5);
    EXPECT_DOUBLE_EQ(rates->redirected.packets, 0);
    EXPECT_DOUBLE_EQ(rates->sets.at("plain").packets, 2);
    EXPECT_DOUBLE_EQ(rates->sets.at("plain").bits, 200);
    EXPECT_DOUBLE_EQ(rates->sets.at("exact").packets, 0);
}

TEST_F(SampleRates, AreUnknownForWhatWasNotThere) {
    const std::vector<Sample> before = take(10);
    EXPECT_FALSE(rates_since({}, before.front()));
    EXPECT_FALSE(rates_since(before, before.front())) << "no time has passed";
    kernel.running.program = 41; // unloaded and loaded anew
    EXPECT_FALSE(rates_since(before, take(11).front()));
    kernel.running.program = 40;
    // The set was removed and loaded again, by chance into the same slot.
    kernel.running.table.sets[0].baseline = {.packets = 17, .bytes = 1700};
    const auto rates = rates_since(before, take(11).front());
    ASSERT_TRUE(rates);
    EXPECT_EQ(rates->sets.count("plain"), 0U);
    EXPECT_EQ(rates->sets.count("exact"), 1U);
}

TEST(ResetCounters, WhatWasCountedIsToldAndTheRestCountsOn) {
    test::FakeKernel kernel;
    kernel.put("bad");
    kernel::Stats& stats = kernel.running.stats;
    stats.hit[0] = {.packets = 7, .bytes = 700};
    stats.dropped = {.packets = 7, .bytes = 700};
    stats.passed = {.packets = 93, .bytes = 9300};
    stats.outcome[SIEVE_OUTCOME_COMPLETE] = 90;
    stats.outcome[SIEVE_OUTCOME_ARP] = 10;
    stats.decided = 7;
    const HookName eth0{.interface = "eth0"};
    const auto filter = [&] {
        test::Files files;
        kernel.put_filter(kernel.running.table.sets[0].map_id,
                          *Image::load(files.image("bad.sieve", {"192.0.2.1"})));
    };
    filter();
    const auto told = reset_counters(kernel, eth0, {});
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_EQ(kernel.steps, (std::vector<std::string>{"lock", "replace", "unlock"}));
    EXPECT_EQ(told->hits(told->table.sets[0]).packets, 7U);
    EXPECT_EQ(told->seen().packets, 100U);
    EXPECT_EQ(told->counted().by_default(), 83U);
    stats.hit[0].packets += 2;
    stats.dropped.packets += 2;
    stats.outcome[SIEVE_OUTCOME_COMPLETE] += 5;
    stats.passed.packets += 3;
    stats.decided += 2;
    const auto samples = take_samples(kernel, eth0);
    ASSERT_TRUE(samples) << samples.error().message;
    const Sample& now = samples->front();
    EXPECT_EQ(now.hits(now.table.sets[0]).packets, 2U);
    EXPECT_EQ(now.seen().packets, 5U);
    EXPECT_EQ(now.counted().by_default(), 3U);
    EXPECT_EQ(now.counted().outcome[SIEVE_OUTCOME_ARP], 0U);
    EXPECT_EQ(now.stats.dropped.packets, 9U) << "the program's own counters never fall";
    kernel.running = {};
    EXPECT_EQ(reset_counters(kernel, eth0, {}).error().kind, ErrorKind::not_attached);
}

} // namespace
} // namespace sieve::control
