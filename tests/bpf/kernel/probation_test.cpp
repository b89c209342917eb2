// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Changes on probation: the program itself goes back to the table from before, with nobody's help.
#include <linux/bpf.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/packet.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve::kernel {
namespace {

using namespace test;
using namespace std::chrono_literals;

struct Death {};

bool map_exists(std::uint32_t id) {
    return static_cast<bool>(UniqueFd(bpf_map_get_fd_by_id(id)));
}

class Probation : public ::testing::TestWithParam<HookPoint> {
  protected:
    void SetUp() override { scratch_ = &shared_program(GetParam()); }

    [[nodiscard]] volatile sieve_control& control() const { return scratch_->instance().control(); }
    [[nodiscard]] SetTable table() const { return scratch_->table(); }

    // A table that drops one address, put on probation for that long; 0: for good.
    [[nodiscard]] Status drop(const FilterMap& map, std::chrono::nanoseconds probation = 0ns) const {
        return table().replace({.default_action = SIEVE_ACTION_PASS,
                                .sets = {{.name = "bad", .action = SIEVE_ACTION_DROP, .map_fd = map.fd()}},
                                .probation = probation});
    }

    [[nodiscard]] bool drops(const std::string& source) const {
        const auto verdict = scratch_->run((Ethernet{} / IPv4{.src = source} / Udp{}).bytes());
        EXPECT_TRUE(verdict) << verdict.error().message;
        return verdict.value_or(XDP_ABORTED) == XDP_DROP;
    }

    // As if the time were over.
    void let_it_expire() const {
        ASSERT_NE(sieve_deadline(control().active), 0U);
        control().active =
            sieve_active_until(static_cast<std::uint32_t>(control().active & 1), program_now());
    }

    void expect_rest() const {
        EXPECT_EQ(control().changing, 0U);
        EXPECT_LT(control().active, static_cast<std::uint64_t>(SIEVE_BANKS));
        const auto* first = reinterpret_cast<const volatile std::uint8_t*>(&control().bank[0]);
        const auto* second = reinterpret_cast<const volatile std::uint8_t*>(&control().bank[1]);
        for (std::size_t i = 0; i < sizeof(sieve_policy); i++)
            ASSERT_EQ(first[i], second[i]) << "at byte " << i;
    }

    const Image old_image_ = image_of({"10.0.0.1"}), new_image_ = image_of({"10.0.0.2"});
    Scratch* scratch_ = nullptr;
};

TEST_P(Probation, IsInForceAtOnceAndKeptIfConfirmed) {
    const auto before = map_of(old_image_), after = map_of(new_image_);
    ASSERT_TRUE(drop(before));
    ASSERT_TRUE(drop(after, 1h));
    EXPECT_TRUE(drops("10.0.0.2"));
    EXPECT_FALSE(drops("10.0.0.1"));
    const TableInForce now = table().read();
    ASSERT_TRUE(now.probation);
    EXPECT_LE(*now.probation, 1h);
    EXPECT_GT(*now.probation, 59min);
    EXPECT_FALSE(now.taken_back);
    EXPECT_EQ(now.find("bad")->map_id, after.id());

    // Nothing else may change meanwhile.
    const Status other = drop(before);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().kind, ErrorKind::unconfirmed);
    EXPECT_TRUE(drops("10.0.0.2"));

    ASSERT_TRUE(table().confirm());
    expect_rest();
    EXPECT_TRUE(drops("10.0.0.2"));
    EXPECT_FALSE(table().read().probation);
    EXPECT_EQ(table().confirm().error().kind, ErrorKind::no);
    EXPECT_EQ(table().take_back().error().kind, ErrorKind::no);
    ASSERT_TRUE(drop(before));
    expect_rest();
}

TEST_P(Probation, IsTakenBackOnRequest) {
    const auto before = map_of(old_image_);
    std::uint32_t gone = 0;
    ASSERT_TRUE(drop(before));
    {
        const auto after = map_of(new_image_);
        gone = after.id();
        ASSERT_TRUE(drop(after, 1h));
    }
    EXPECT_TRUE(map_exists(gone));
    ASSERT_TRUE(table().take_back());
    expect_rest();
    EXPECT_TRUE(drops("10.0.0.1"));
    EXPECT_FALSE(drops("10.0.0.2"));
    EXPECT_FALSE(map_exists(gone)) << "leftover";
}

// The clock decides, and no system call of ours takes part: packets are judged by the new table before the
// deadline and by the old one after it.
TEST_P(Probation, TheProgramItselfTakesItBack) {
    const auto before = map_of(old_image_), after = map_of(new_image_);
    ASSERT_TRUE(drop(before));
    ASSERT_TRUE(drop(after, 2s));
    const std::uint64_t deadline = sieve_deadline(control().active);
    ASSERT_NE(deadline, 0U);
    bool was_new = false;
    constexpr std::uint64_t little = 100'000'000;
    for (;;) {
        const std::uint64_t earlier = program_now();
        const bool is_new = drops("10.0.0.2");
        const std::uint64_t later = program_now();
        if (is_new)
            EXPECT_LT(earlier, deadline);
        else
            EXPECT_GE(later, deadline);
        was_new = was_new || is_new;
        ASSERT_LT(earlier, deadline + 60'000'000'000) << "never taken back";
        if (!is_new) break;
        // It asks without a pause only when the deadline is near.
        if (later + little < deadline) std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(was_new) << "the machine was stopped for longer than the probation";
    EXPECT_TRUE(drops("10.0.0.1"));
    const TableInForce now = table().read();
    EXPECT_TRUE(now.taken_back);
    EXPECT_FALSE(now.probation);
    EXPECT_EQ(now.find("bad")->map_id, before.id()) << "what is in force is the old table";
    EXPECT_EQ(table().confirm().error().kind, ErrorKind::no) << "too late";
    EXPECT_TRUE(drops("10.0.0.1"));
}

// The next change starts from the table that came back, and frees what was taken back.
TEST_P(Probation, TheNextChangeTidiesUp) {
    const auto before = map_of(old_image_), more = map_of(image_of({"10.0.0.3"}));
    std::uint32_t gone = 0;
    ASSERT_TRUE(drop(before));
    {
        const auto after = map_of(new_image_);
        gone = after.id();
        ASSERT_TRUE(table().replace(
            {SIEVE_ACTION_DROP, {{"friends", SIEVE_ACTION_PASS, after.fd()}}, SIEVE_ACTION_DROP, 1h}));
    }
    EXPECT_TRUE(drops("10.0.0.1"));
    EXPECT_TRUE(drops("10.0.0.9"));
    EXPECT_FALSE(drops("10.0.0.2"));
    let_it_expire();
    EXPECT_TRUE(drops("10.0.0.1"));
    EXPECT_FALSE(drops("10.0.0.9"));
    ASSERT_TRUE(table().replace(
        {SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, -1}, {"more", SIEVE_ACTION_DROP, more.fd()}}}));
    expect_rest();
    EXPECT_TRUE(drops("10.0.0.1"));
    EXPECT_TRUE(drops("10.0.0.3"));
    EXPECT_FALSE(drops("10.0.0.9"));
    EXPECT_FALSE(map_exists(gone)) << "leftover";
    EXPECT_FALSE(table().read().taken_back);
}

// The first table that a program gets can be on probation, too. Then every packet passes afterwards.
TEST_P(Probation, AFirstTableGivesWayToAnEmptyOne) {
    const auto map = map_of(new_image_);
    std::optional<Scratch> fresh;
    const auto load = [&] {
        fresh = value_or_fail(Scratch::load_with(
            [&] {
                return Scratch::Sets{{map.fd()}, {}};
            },
            false, GetParam()));
        scratch_ = &*fresh;
        ASSERT_TRUE(table().install(
            {SIEVE_ACTION_DROP, {{"friends", SIEVE_ACTION_PASS, map.fd()}}, SIEVE_ACTION_DROP, 1h}));
        EXPECT_TRUE(drops("10.0.0.1"));
        EXPECT_FALSE(drops("10.0.0.2"));
    };
    load();
    let_it_expire();
    EXPECT_FALSE(drops("10.0.0.1"));
    EXPECT_TRUE(table().read().taken_back);
    EXPECT_TRUE(table().read().sets.empty());
    EXPECT_EQ(table().read().unreadable, SIEVE_ACTION_PASS);
    ASSERT_TRUE(drop(map));
    expect_rest();
    EXPECT_TRUE(drops("10.0.0.2"));

    load();
    ASSERT_TRUE(table().confirm());
    expect_rest();
    EXPECT_TRUE(drops("10.0.0.1"));
    EXPECT_FALSE(drops("10.0.0.2"));
}

// A controller dies before each of its steps while it puts a table on probation, confirms it, or takes it
// back. The program has one whole table, and the deadline still holds if nobody ended it.
TEST_P(Probation, DeathAtEveryStepLeavesAWholeTable) {
    const auto before = map_of(old_image_), after = map_of(new_image_);
    enum class Step { put, confirm, take_back };
    for (const Step what : {Step::put, Step::confirm, Step::take_back}) {
        bool finished = false;
        for (std::size_t fatal = 0; !finished; fatal++) {
            ASSERT_LT(fatal, 100U);
            SCOPED_TRACE(fatal);
            ASSERT_TRUE(drop(before));
            if (what != Step::put) {
                ASSERT_TRUE(drop(after, 1h));
            }
            SetTable dying = table();
            std::size_t steps = 0;
            dying.set_step_hook([&](std::string_view) {
                if (steps++ == fatal) throw Death();
            });
            try {
                const Status done = what == Step::put
                                        ? dying.replace({SIEVE_ACTION_PASS,
                                                         {{"bad", SIEVE_ACTION_DROP, after.fd()}},
                                                         SIEVE_ACTION_DROP,
                                                         1h})
                                    : what == Step::confirm ? dying.confirm()
                                                            : dying.take_back();
                EXPECT_TRUE(done) << done.error().message;
                finished = true;
            } catch (const Death&) {
            }
            EXPECT_NE(drops("10.0.0.1"), drops("10.0.0.2")) << "neither table, or both";
            if (finished) {
                EXPECT_EQ(drops("10.0.0.2"), what != Step::take_back);
            }
            if (sieve_deadline(control().active) != 0) {
                EXPECT_TRUE(drops("10.0.0.2"));
                let_it_expire();
                EXPECT_TRUE(drops("10.0.0.1"));
            }
            ASSERT_TRUE(drop(before));
            expect_rest();
            EXPECT_TRUE(drops("10.0.0.1"));
            EXPECT_FALSE(drops("10.0.0.2"));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Hooks, Probation,
                         ::testing::Values(HookPoint::xdp, HookPoint::ingress, HookPoint::egress),
                         [](const auto& hook) { return hook_point_name(hook.param); });

TEST(Clock, OffsetsOfATimeNamespaceAreSubtracted) {
    EXPECT_EQ(monotonic_offset(""), 0);
    EXPECT_EQ(monotonic_offset("monotonic           0         0\nboottime            0         0\n"), 0);
    EXPECT_EQ(monotonic_offset("boottime -7 5\nmonotonic 86400 12\n"), 86'400'000'000'012);
    EXPECT_EQ(monotonic_offset("monotonic -10 0\n"), -10'000'000'000);
}

} // namespace
} // namespace sieve::kernel
