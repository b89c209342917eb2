// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/top_keys.hpp"

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;

class TopKeysTest : public testing::Test {
  protected:
    TopKeysTest() {
        FeedSpec flows;
        flows.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
        kernel.put_filter(kernel.put("all").map_id, Image::load(files.image("all", {"192.0.2.1"})).value());
        kernel.put_filter(kernel.put("flows").map_id,
                          Image::load(files.image("flows", {"192.0.2.1 53"}, flows)).value());
    }
    static kernel::HeavyKey heavy(std::uint32_t slot, std::uint64_t packets) {
        return {.key = parse_key("192.0.2.1", SIEVE_FIELD_SRC).value(), .slot = slot, .packets = packets};
    }

    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};
};

TEST_F(TopKeysTest, CountingBeginsOnceAndAnewOnRequest) {
    EXPECT_TRUE(count_keys(kernel, eth0, false, {}).value());
    EXPECT_TRUE(kernel.running.watching.counts_keys);
    EXPECT_FALSE(count_keys(kernel, eth0, false, {}).value());
    EXPECT_EQ(kernel.steps, (std::vector<std::string>{"lock", "start tally", "unlock"}));
    EXPECT_TRUE(count_keys(kernel, eth0, true, {}).value());
    EXPECT_EQ(kernel.count("start tally"), 2U);
}

TEST_F(TopKeysTest, CountingThatSomebodyElseBeganIsKept) {
    kernel.once("lock", [&] { kernel.running.watching.counts_keys = true; });
    EXPECT_FALSE(count_keys(kernel, eth0, false, {}).value());
    EXPECT_EQ(kernel.count("start tally"), 0U);
}

TEST_F(TopKeysTest, StopsOnlyWhatIsOn) {
    const Status nothing_to_stop = stop_counting_keys(kernel, eth0, {});
    ASSERT_FALSE(nothing_to_stop);
    EXPECT_EQ(nothing_to_stop.error().kind, ErrorKind::no);
    EXPECT_EQ(kernel.count("stop tally"), 0U);
    expect_error(read_top_keys(kernel, eth0, 10), ErrorKind::no);
    kernel.running.watching.counts_keys = true;
    EXPECT_TRUE(stop_counting_keys(kernel, eth0, {}));
    EXPECT_FALSE(kernel.running.watching.counts_keys);
}

TEST_F(TopKeysTest, AreNamedByTheirSets) {
    kernel.running.watching.counts_keys = true;
    // The set in slot 5 has been removed. Its matches must not push out other sets' keys.
    kernel.running.tally = {
        .since = 99, .total = 4093, .keys = {heavy(5, 2000), heavy(1, 1000), heavy(0, 10), heavy(0, 1)}};
    const auto top = read_top_keys(kernel, eth0, 2);
    ASSERT_TRUE(top) << top.error().message;
    EXPECT_EQ(top->since, 99U);
    EXPECT_EQ(top->matches, 4093U);
    EXPECT_DOUBLE_EQ(top->error, 4); // 4 / 4093 of all matches
    ASSERT_EQ(top->keys.size(), 2U);
    EXPECT_EQ(top->keys[0].set, "flows");
    EXPECT_EQ(top->keys[0].fields, SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT);
    EXPECT_DOUBLE_EQ(top->share(top->keys[0]), 1000.0 / 4093);
    EXPECT_EQ(top->keys[1].set, "all");
    EXPECT_EQ(top->keys[1].packets, 10U);
    EXPECT_EQ(kernel.count("lock"), 0U) << "reading takes no lock";
}

} // namespace
} // namespace sieve::control
