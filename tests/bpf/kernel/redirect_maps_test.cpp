// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Redirection: the verdict, what becomes of packets whose target has gone, and that a redirection changes
// with the table.
#include "libsieve/kernel/maps/redirect_maps.hpp"

#include <linux/bpf.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/own_network.hpp"
#include "bpf/packet.hpp"
#include "bpf/scarce.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

std::uint32_t verdict_on(const Scratch& scratch, const std::string& source) {
    return value_or_fail(scratch.run((Ethernet{} / IPv4{.src = source} / Udp{}).bytes()));
}

WantedSet redirecting(const std::string& name, const FilterMap& map, const std::string& target) {
    const Target to = value_or_fail(find_target(target));
    return {.name = name, .action = to.action, .map_fd = map.fd(), .target = to.number};
}

std::uint32_t devices_in(const Scratch& scratch, std::uint32_t bank) {
    return scratch.instance().control().bank[bank].devices_id;
}

bool exists(std::uint32_t map) {
    return static_cast<bool>(UniqueFd(bpf_map_get_fd_by_id(map)));
}

TEST(Redirect, FindsTargets) {
    in_own_network([] {
        ASSERT_TRUE(ip("link add in type veth peer name out"));
        const Target device = value_or_fail(find_target("out"));
        EXPECT_EQ(device.action, SIEVE_ACTION_REDIRECT_DEVICE);
        EXPECT_EQ(target_name(device), "out");
        const Target cpu = value_or_fail(find_target("cpu:0"));
        EXPECT_EQ(cpu.action, SIEVE_ACTION_REDIRECT_CPU);
        EXPECT_EQ(cpu.number, 0U);
        EXPECT_EQ(target_name(cpu), "cpu:0");
        EXPECT_EQ(target_name({SIEVE_ACTION_REDIRECT_DEVICE, 99'999}), "interface 99999 (gone)");
        const std::string beyond = fmt::format("cpu:{}", libbpf_num_possible_cpus());
        EXPECT_EQ(target_state(device), TargetState::down);
        ASSERT_TRUE(ip("link set out up"));
        EXPECT_EQ(target_state(device), TargetState::ready);
        EXPECT_EQ(target_state(cpu), TargetState::ready);
        EXPECT_EQ(target_state({SIEVE_ACTION_REDIRECT_DEVICE, 99'999}), TargetState::gone);
        for (const auto& [text, kind] :
             std::vector<std::pair<std::string, ErrorKind>>{{"", ErrorKind::invalid_request},
                                                            {"cpu:", ErrorKind::invalid_request},
                                                            {"cpu:-1", ErrorKind::invalid_request},
                                                            {"cpu:1x", ErrorKind::invalid_request},
                                                            {"cpu:99999999999", ErrorKind::invalid_request},
                                                            {"nobody", ErrorKind::kernel_refused},
                                                            {beyond, ErrorKind::kernel_refused}}) {
            const auto target = find_target(text);
            ASSERT_FALSE(target) << text;
            EXPECT_EQ(target.error().kind, kind) << text;
        }
    });
}

TEST(Redirect, MembersGoToTheTargetAndNobodyElse) {
    in_own_network([] {
        ASSERT_TRUE(ip("link add in type veth peer name out"));
        const auto to_device = map_of(image_of({"10.0.0.1"})), to_cpu = map_of(image_of({"10.0.0.2"}));
        const Scratch scratch = value_or_fail(Scratch::load(true));
        ASSERT_TRUE(scratch.table().replace(
            {SIEVE_ACTION_DROP,
             {redirecting("out", to_device, "out"), redirecting("cpu", to_cpu, "cpu:0")}}));
        const Stats before = value_or_fail(read_stats(scratch.instance()));
        EXPECT_EQ(verdict_on(scratch, "10.0.0.1"), XDP_REDIRECT);
        EXPECT_EQ(scratch.trace().verdict, XDP_REDIRECT);
        EXPECT_EQ(verdict_on(scratch, "10.0.0.2"), XDP_REDIRECT);
        EXPECT_EQ(verdict_on(scratch, "10.0.0.3"), XDP_DROP);
        const Stats after = value_or_fail(read_stats(scratch.instance()));
        EXPECT_EQ(difference(after.redirected, before.redirected).packets, 2U);
        EXPECT_GT(difference(after.redirected, before.redirected).bytes, 0U);
        EXPECT_EQ(difference(after.dropped, before.dropped).packets, 1U);
        EXPECT_EQ(difference(after.passed, before.passed).packets, 0U);
        EXPECT_EQ(after.redirect_failed, before.redirect_failed);
        const TableInForce table = scratch.table().read();
        EXPECT_EQ(table.find("out")->action, SIEVE_ACTION_REDIRECT_DEVICE);
        EXPECT_EQ(target_name({table.find("out")->action, table.find("out")->target}), "out");
        EXPECT_EQ(target_name({table.find("cpu")->action, table.find("cpu")->target}), "cpu:0");
    });
}

// An interface that goes takes its map entry along. The packets then get the default and are counted.
TEST(Redirect, WithoutItsTargetAPacketGetsTheDefault) {
    in_own_network([] {
        ASSERT_TRUE(ip("link add in type veth peer name out"));
        ASSERT_TRUE(ip("link add stays type veth peer name peer"));
        const auto map = map_of(image_of({"10.0.0.1"})), other = map_of(image_of({"10.0.0.2"}));
        const Scratch scratch = value_or_fail(Scratch::load(false));
        const auto put = [&](sieve_action default_action) {
            return scratch.table().replace(
                {default_action, {redirecting("out", map, "out"), redirecting("stays", other, "stays")}});
        };
        ASSERT_TRUE(put(SIEVE_ACTION_PASS));
        ASSERT_EQ(verdict_on(scratch, "10.0.0.1"), XDP_REDIRECT);
        ASSERT_TRUE(ip("link del in"));
        EXPECT_EQ(verdict_on(scratch, "10.0.0.1"), XDP_PASS);
        EXPECT_EQ(verdict_on(scratch, "10.0.0.2"), XDP_REDIRECT);
        const Stats stats = value_or_fail(read_stats(scratch.instance()));
        EXPECT_EQ(stats.redirect_failed, 1U);
        EXPECT_EQ(stats.passed.packets, 1U);
        EXPECT_EQ(stats.redirected.packets, 2U);

        // The rest of the table can still change. The set whose target has gone stays.
        WantedTable wanted{SIEVE_ACTION_DROP, {}};
        const TableInForce live = scratch.table().read();
        const SetInForce& gone = *live.find("out");
        wanted.sets.push_back({.name = "out", .action = gone.action, .map_fd = -1, .target = gone.target});
        wanted.sets.push_back(redirecting("cpu", other, "cpu:0"));
        const auto done = scratch.table().replace(wanted);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(verdict_on(scratch, "10.0.0.1"), XDP_DROP);
        EXPECT_EQ(verdict_on(scratch, "10.0.0.2"), XDP_REDIRECT);
        ASSERT_TRUE(ip("link add in2 type veth peer name out2"));
        wanted.sets.push_back(redirecting("more", map, "out2"));
        const auto more = scratch.table().replace(wanted);
        ASSERT_TRUE(more) << more.error().message;
        EXPECT_EQ(verdict_on(scratch, "10.0.0.1"), XDP_DROP);

        // But a new target must exist.
        wanted.sets.back().target = 99'999;
        const auto refused = scratch.table().replace(wanted);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().kind, ErrorKind::kernel_refused);
        EXPECT_EQ(scratch.table().read().find("more")->target, value_or_fail(find_interface("out2")).index);
    });
}

// The targets belong to the bank. Unchanged targets keep their map, new ones come with the flip, and no old
// map is left.
TEST(Redirect, TargetsChangeWithTheTable) {
    in_own_network([] {
        ASSERT_TRUE(ip("link add in type veth peer name out"));
        const auto map = map_of(image_of({"10.0.0.1"})), newer = map_of(image_of({"10.0.0.1", "10.0.0.2"}));
        const Scratch scratch = value_or_fail(Scratch::load(false));
        ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_PASS, {redirecting("a", map, "out")}}));
        const std::uint32_t first = devices_in(scratch, 0);
        EXPECT_EQ(first, devices_in(scratch, 1));
        ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_PASS, {redirecting("a", newer, "out")}}));
        EXPECT_EQ(devices_in(scratch, 0), first) << "a swap does not touch the targets";
        EXPECT_EQ(verdict_on(scratch, "10.0.0.2"), XDP_REDIRECT);
        ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_PASS, {redirecting("a", newer, "in")}}));
        EXPECT_NE(devices_in(scratch, 0), first);
        EXPECT_FALSE(exists(first));
        const std::uint32_t second = devices_in(scratch, 0);
        ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_PASS, {redirecting("a", newer, "cpu:0")}}));
        EXPECT_EQ(devices_in(scratch, 0), 0U);
        EXPECT_FALSE(exists(second));
        const std::uint32_t cpus = scratch.instance().control().bank[0].cpus_id;
        EXPECT_TRUE(exists(cpus));
        ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_PASS, {}}));
        EXPECT_FALSE(exists(cpus));
        EXPECT_EQ(verdict_on(scratch, "10.0.0.1"), XDP_PASS);
    });
}

// The controller dies before each of its steps: the verdict is the old table's or the new table's.
TEST(Redirect, DeathAtEveryStepLeavesAWholeTable) {
    struct Death {};
    in_own_network([] {
        ASSERT_TRUE(ip("link add in type veth peer name out"));
        const auto map = map_of(image_of({"10.0.0.1"}));
        const Scratch scratch = value_or_fail(Scratch::load(false));
        bool finished = false;
        for (std::size_t deadly = 1; !finished; deadly++) {
            SCOPED_TRACE(fmt::format("death before step {}", deadly));
            ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_DROP, {redirecting("a", map, "out")}}));
            SetTable table = scratch.table();
            std::size_t steps = 0;
            table.set_step_hook([&](std::string_view) {
                if (++steps == deadly) throw Death{};
            });
            try {
                ASSERT_TRUE(table.replace({SIEVE_ACTION_DROP, {redirecting("a", map, "cpu:0")}}));
                finished = true;
            } catch (const Death&) {
            }
            EXPECT_EQ(verdict_on(scratch, "10.0.0.1"), XDP_REDIRECT);
            ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_DROP, {redirecting("a", map, "in")}}));
            EXPECT_EQ(verdict_on(scratch, "10.0.0.1"), XDP_REDIRECT);
            EXPECT_EQ(scratch.instance().control().changing, 0U);
            EXPECT_EQ(devices_in(scratch, 0), devices_in(scratch, 1));
            EXPECT_EQ(scratch.instance().control().bank[0].cpus_id, 0U);
            EXPECT_EQ(scratch.instance().control().bank[1].cpus_id, 0U);
        }
        EXPECT_EQ(value_or_fail(read_stats(scratch.instance())).redirect_failed, 0U);
    });
}

/// A target that has gone since the table in force was made stays in the next table. A new target must exist.
TEST(Redirect, TargetsThatCannotBeAreRefused) {
    in_own_network([] {
        constexpr std::uint32_t nowhere = 99'999;
        EXPECT_TRUE(create_device_map({nowhere}, {nowhere}));
        const auto device = create_device_map({nowhere}, {});
        ASSERT_FALSE(device);
        EXPECT_NE(device.error().message.find("interface 99999"), std::string::npos)
            << device.error().message;
        const auto beyond = static_cast<std::uint32_t>(libbpf_num_possible_cpus());
        EXPECT_TRUE(create_cpu_map({beyond}, {beyond}));
        const auto cpu = create_cpu_map({beyond}, {});
        ASSERT_FALSE(cpu);
        EXPECT_NE(cpu.error().message.find(fmt::format("CPU {}", beyond)), std::string::npos)
            << cpu.error().message;
    });
}

TEST(Redirect, NoDescriptorIsARefusal) {
    const rlim_t limit = descriptors_left(0);
    const auto [devices, cpus] = [&] {
        const Limit none(RLIMIT_NOFILE, limit);
        return std::pair(create_device_map({}, {}), create_cpu_map({}, {}));
    }();
    ASSERT_FALSE(devices);
    EXPECT_NE(devices.error().message.find("interfaces to redirect to"), std::string::npos);
    ASSERT_FALSE(cpus);
    EXPECT_NE(cpus.error().message.find("CPUs to redirect to"), std::string::npos) << cpus.error().message;
}

} // namespace
} // namespace sieve::kernel
