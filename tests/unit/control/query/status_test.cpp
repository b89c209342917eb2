// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/status.hpp"

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;

class ReadStatus : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};

    // A set in force with this many keys.
    kernel::SetInForce put(const std::string& name, int keys, bool verified = false) {
        std::vector<std::string> lines;
        for (int i = 0; i < keys; i++) lines.push_back("192.0.2." + std::to_string(i));
        const kernel::SetInForce set = kernel.put(name, SIEVE_ACTION_DROP, verified);
        kernel.put_filter(set.map_id, Image::load(files.image(name, lines)).value());
        return set;
    }
};

TEST_F(ReadStatus, TellsEachSetWithItsFilter) {
    put("small", 3);
    const kernel::SetInForce exact = put("exact", 200, true);
    kernel.running.table.default_action = SIEVE_ACTION_DROP;
    kernel.running.watching = {.sample = 16, .counts_keys = true};
    const auto overview = read_status(kernel, eth0);
    ASSERT_TRUE(overview) << overview.error().message;
    ASSERT_EQ(overview->ours.size(), 1U);
    const HookStatus& status = overview->ours.front();
    EXPECT_EQ(status.hook.ours->id, 40U);
    EXPECT_EQ(status.table.default_action, SIEVE_ACTION_DROP);
    EXPECT_EQ(status.watching.sample, 16U);
    EXPECT_TRUE(status.watching.counts_keys);
    ASSERT_EQ(status.table.sets.size(), 2U);
    const SetStatus& small = status.table.sets[0];
    EXPECT_EQ(small.set.name, "small");
    EXPECT_EQ(small.filter.file.keys, 3U);
    EXPECT_FALSE(small.verified());
    EXPECT_EQ(small.exact_bytes, 0U);
    // A blocked filter of three keys has one or two lines of 512 bits.
    EXPECT_GE(small.bits_per_key(), 512.0 / 3);
    EXPECT_LE(small.bits_per_key(), 1024.0 / 3);
    EXPECT_EQ(small.identity().size(), 32U);
    EXPECT_NE(small.identity(), status.table.sets[1].identity());
    EXPECT_TRUE(status.table.sets[1].verified());
    EXPECT_EQ(status.table.sets[1].exact_bytes, exact.exact_id * 1000U);
    EXPECT_EQ(kernel.count("lock"), 0U) << "reading takes no lock";
}

TEST_F(ReadStatus, CoversAllInterfacesAndHooks) {
    kernel.running = {.foreign = true, .program = 6, .table = {}};
    kernel.at_tc[kernel::HookPoint::egress] = {.ours = true, .program = 8, .table = {}};
    kernel.more_interfaces = {"gone", "eth1"};
    const auto overview = read_status(kernel, {});
    ASSERT_TRUE(overview) << overview.error().message;
    ASSERT_EQ(overview->ours.size(), 1U);
    EXPECT_EQ(overview->ours.front().hook.point, kernel::HookPoint::egress);
    ASSERT_EQ(overview->foreign.size(), 1U);
    EXPECT_EQ(overview->foreign.front().interface, "eth0");
    EXPECT_EQ(overview->foreign.front().id, 6U);
    EXPECT_EQ(overview->foreign.front().name, "foreigner");
    // A name selects one set.
    EXPECT_TRUE(read_status(kernel, {.interface = "eth0", .point = kernel::HookPoint::xdp})->ours.empty());
    EXPECT_TRUE(read_status(kernel, {.interface = "eth1"})->ours.empty());
    EXPECT_FALSE(read_status(kernel, {.interface = "gone"}));
}

TEST_F(ReadStatus, OfAnotherVersionIsTheHookAlone) {
    kernel.running = {.ours = true, .other_version = true, .program = 5, .table = {}};
    const auto overview = read_status(kernel, eth0);
    ASSERT_TRUE(overview) << overview.error().message;
    ASSERT_EQ(overview->ours.size(), 1U);
    EXPECT_EQ(overview->ours.front().hook.other_version, "it speaks version 1");
    EXPECT_TRUE(overview->ours.front().table.sets.empty());
}

TEST_F(ReadStatus, ReadsTheTableAgainIfAFilterLeaves) {
    put("first", 3);
    const std::uint32_t old_filter = kernel.running.table.sets.front().map_id;
    kernel.once("read filter", [&] { // a swap
        kernel.put_filter(700, Image::load(files.path("first")).value());
        kernel.running.table.sets.front().map_id = 700;
        kernel.take_filter(old_filter);
    });
    const auto overview = read_status(kernel, eth0);
    ASSERT_TRUE(overview) << overview.error().message;
    EXPECT_EQ(overview->ours.front().table.sets.front().set.map_id, 700U);
    // A missing filter is an error.
    kernel.take_filter(700);
    EXPECT_FALSE(read_status(kernel, eth0));
}

} // namespace
} // namespace sieve::control
