// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/stats.hpp"

#include <set>
#include <string>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "libsieve/kernel/programs/bpf_object.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

TEST(Stats, SumsOverTheCpus) {
    const BpfObject object = value_or_fail(BpfObject::load({}));
    const auto cpus = static_cast<std::size_t>(libbpf_num_possible_cpus());
    std::vector<sieve_stats> values(cpus);
    for (std::size_t cpu = 0; cpu < cpus; cpu++) {
        values[cpu].hit[0] = {1, 100};
        values[cpu].hit[SIEVE_SLOTS - 1] = {cpu, 2 * cpu};
        values[cpu].passed = {10, 20};
        values[cpu].dropped = {30, 40};
        values[cpu].redirected = {50, 60};
        values[cpu].redirect_failed = 7;
        values[cpu].verified[SIEVE_SLOTS - 1] = {9, 8};
        for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++) values[cpu].outcome[i] = i;
    }
    const std::uint32_t zero = 0;
    ASSERT_EQ(bpf_map_update_elem(object.instance().stats_fd(), &zero, values.data(), BPF_ANY), 0);
    const Stats stats = value_or_fail(read_stats(object.instance()));
    const std::uint64_t all = cpus * (cpus - 1) / 2;
    EXPECT_EQ(stats.hit[0].packets, cpus);
    EXPECT_EQ(stats.hit[0].bytes, 100 * cpus);
    EXPECT_EQ(stats.hit[SIEVE_SLOTS - 1].packets, all);
    EXPECT_EQ(stats.hit[SIEVE_SLOTS - 1].bytes, 2 * all);
    EXPECT_EQ(stats.passed.packets, 10 * cpus);
    EXPECT_EQ(stats.dropped.bytes, 40 * cpus);
    EXPECT_EQ(stats.redirected.packets, 50 * cpus);
    EXPECT_EQ(stats.redirected.bytes, 60 * cpus);
    EXPECT_EQ(stats.redirect_failed, 7 * cpus);
    EXPECT_EQ(stats.verified[SIEVE_SLOTS - 1].non_members, 9 * cpus);
    EXPECT_EQ(stats.verified[SIEVE_SLOTS - 1].avoided, 8 * cpus);
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++) EXPECT_EQ(stats.outcome[i], i * cpus);
}

TEST(Stats, DifferencesSurviveAnOverflow) {
    const sieve_counter grown = difference(sieve_counter{5, 7}, {~0ULL, ~0ULL - 1});
    EXPECT_EQ(grown.packets, 6U);
    EXPECT_EQ(grown.bytes, 9U);
}

TEST(Stats, EveryOutcomeHasAName) {
    std::set<std::string> names;
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++) names.insert(outcome_name(i));
    EXPECT_EQ(names.size(), SIEVE_OUTCOMES);
    EXPECT_FALSE(names.contains("unknown"));
    EXPECT_STREQ(outcome_name(SIEVE_OUTCOMES), "unknown");
}

} // namespace
} // namespace sieve::kernel
