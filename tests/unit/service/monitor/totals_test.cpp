// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Totals against a small kernel whose truth is known.
#include "libsieve/service/monitor/totals.hpp"

#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "unit/service/monitor/samples.hpp"

namespace sieve::service::watching {
namespace {

using test::SmallKernel;

const HookId eth0{"eth0", kernel::HookPoint::xdp};
constexpr char boot[] = "this run";

class TotalsTest : public testing::Test {
  protected:
    TotalsTest() { kernel_.replace_program(); }

    bool observe() { return totals_.observe(kernel_.samples(), now_++); }
    [[nodiscard]] std::uint64_t matched(const std::string& set) const {
        return totals_.set(eth0, set).matches.packets;
    }
    // As if this process had died and another had started.
    void restart(const std::string& next_boot = boot) {
        auto read = Totals::read(totals_.text(boot), next_boot);
        ASSERT_TRUE(read) << read.error().message;
        totals_ = std::move(*read);
    }

    SmallKernel kernel_;
    Totals totals_;
    std::int64_t now_ = 1000;
};

TEST_F(TotalsTest, CountsWhatTheKernelCounted) {
    kernel_.add("a", true);
    kernel_.packets("a", 5, 3, 1);
    EXPECT_TRUE(observe());
    EXPECT_EQ(matched("a"), 5U);
    EXPECT_EQ(totals_.set(eth0, "a").matches.bytes, 300U);
    EXPECT_EQ(totals_.set(eth0, "a").verified.non_members, 3U);
    EXPECT_EQ(totals_.set(eth0, "a").verified.avoided, 1U);
    EXPECT_EQ(totals_.hook(eth0).dropped.packets, 5U);
    EXPECT_EQ(totals_.hook(eth0).outcome[SIEVE_OUTCOME_COMPLETE], 5U);
    EXPECT_FALSE(observe());
    EXPECT_EQ(matched("a"), 5U);
    EXPECT_EQ(matched("unknown"), 0U);
    EXPECT_EQ(totals_.hook({"eth0", kernel::HookPoint::egress}).dropped.packets, 0U);
}

TEST_F(TotalsTest, AnotherFilterKeepsWhatVerificationShowed) {
    kernel_.add("a", true);
    kernel_.packets("a", 5, 40, 2);
    observe();
    kernel_.packets("a", 1, 10, 1);
    kernel_.swap("a");
    kernel_.packets("a", 1, 5, 1);
    EXPECT_FALSE(observe());
    EXPECT_EQ(matched("a"), 7U);
    EXPECT_EQ(totals_.set(eth0, "a").verified.non_members, 55U);
    EXPECT_EQ(totals_.set(eth0, "a").verified.avoided, 4U);
}

TEST_F(TotalsTest, ASetThatLeavesAndComesBackGoesOn) {
    kernel_.add("a");
    kernel_.packets("a", 5);
    observe();
    kernel_.packets("a", 2);
    kernel_.remove("a");
    EXPECT_TRUE(observe());
    EXPECT_EQ(matched("a"), 7U);
    kernel_.add("a");
    kernel_.packets("a", 4);
    EXPECT_TRUE(observe());
    EXPECT_EQ(matched("a"), 11U);
}

TEST_F(TotalsTest, ASlotThatChangesHandsIsSharedOut) {
    kernel_.add("a");
    kernel_.packets("a", 5);
    observe();
    kernel_.packets("a", 2);
    kernel_.remove("a");
    kernel_.add("b"); // takes the same slot
    kernel_.packets("b", 100);
    observe();
    EXPECT_EQ(matched("a"), 7U);
    EXPECT_EQ(matched("b"), 100U);
}

TEST_F(TotalsTest, AnotherProgramAddsToWhatWasCounted) {
    kernel_.add("a");
    kernel_.packets("a", 5);
    observe();
    kernel_.replace_program();
    kernel_.add("a");
    kernel_.packets("a", 3);
    EXPECT_TRUE(observe());
    EXPECT_EQ(matched("a"), 8U);
    EXPECT_EQ(totals_.hook(eth0).dropped.packets, 8U);
    kernel_.remove_program();
    EXPECT_TRUE(observe());
    EXPECT_EQ(totals_.hook(eth0).dropped.packets, 8U);
}

TEST_F(TotalsTest, ARestartOfTheProcessLosesNothing) {
    kernel_.add("a");
    kernel_.packets("a", 5);
    observe();
    kernel_.packets("a", 4);
    restart();
    EXPECT_FALSE(observe());
    EXPECT_EQ(matched("a"), 9U);
    EXPECT_EQ(totals_.hook(eth0).dropped.packets, 9U);
}

// The kernel's counters are new, and so are its program ids: the same number may mean another program.
TEST_F(TotalsTest, ARestartOfTheMachineStartsAtZero) {
    kernel_.add("a");
    kernel_.packets("a", 5);
    observe();
    restart("another run");
    EXPECT_EQ(matched("a"), 0U);
    EXPECT_EQ(totals_.hook(eth0).dropped.packets, 0U);
}

TEST_F(TotalsTest, TextThatIsNoneOfOursIsRefused) {
    for (const char* text :
         {"", "{}", "[]", "null", R"({"counters":2,"boot":"this run","hooks":[],"sets":[]})",
          R"({"counters":1,"boot":"this run","hooks":[{}],"sets":[]})",
          R"({"counters":1,"boot":"this run","hooks":[7],"sets":[]})"}) {
        EXPECT_FALSE(Totals::read(text, boot)) << text;
    }
    kernel_.add("a");
    observe();
    std::string text = totals_.text(boot);
    const std::size_t slot = text.find("\"slot\":0");
    ASSERT_NE(slot, std::string::npos);
    EXPECT_FALSE(Totals::read(text.replace(slot, 8, "\"slot\":99"), boot));
}

TEST_F(TotalsTest, OldNamesAreForgottenInTheEnd) {
    kernel_.add("keep");
    kernel_.packets("keep", 1);
    for (int i = 0; i < 3000; i++) {
        const std::string name = "set" + std::to_string(i);
        kernel_.add(name);
        kernel_.packets(name, 1);
        observe();
        kernel_.remove(name);
    }
    observe();
    EXPECT_LT(totals_.text(boot).size(), 400000U);
    EXPECT_EQ(matched("keep"), 1U);
    EXPECT_EQ(matched("set2999"), 1U);
    EXPECT_EQ(matched("set0"), 0U);
}

// Anything may happen in any order. Between two observations a slot changes hands at most once, as the table
// at the head of totals.hpp says. Then nothing is lost, nothing is counted twice, and nothing ever falls.
TEST(Totals, AreTheTruthWhateverHappens) {
    for (std::uint32_t seed = 1; seed <= 200; seed++) {
        std::mt19937 random(seed);
        const auto one_in = [&random](std::uint32_t n) { return random() % n == 0; };
        SmallKernel kernel;
        kernel.replace_program();
        Totals totals;
        std::map<std::string, std::uint64_t> truth, shown;
        std::uint64_t all = 0;
        for (int step = 0; step < 300; step++) {
            const std::string name(1, static_cast<char>('a' + random() % 6));
            const auto traffic = [&] {
                for (char c = 'a'; c < 'g'; c++)
                    if (const std::string set(1, c); kernel.has(set) && one_in(2)) {
                        const std::uint64_t count = random() % 100;
                        kernel.packets(set, count);
                        truth[set] += count;
                        all += count;
                    }
            };
            traffic();
            if (one_in(20)) { // the daemon observes before it takes a program away
                totals.observe(kernel.samples(), step);
                kernel.replace_program();
            } else if (kernel.has(name)) {
                one_in(2) ? kernel.remove(name) : kernel.swap(name);
            } else {
                kernel.add(name);
            }
            traffic();
            if (one_in(30)) totals = *Totals::read(totals.text(boot), boot);
            totals.observe(kernel.samples(), step);
            for (const auto& [set, count] : truth) {
                const std::uint64_t total = totals.set(eth0, set).matches.packets;
                ASSERT_EQ(total, count) << "seed " << seed << ", step " << step << ", set " << set;
                ASSERT_GE(total, shown[set]);
                shown[set] = total;
            }
            ASSERT_EQ(totals.hook(eth0).dropped.packets, all) << "seed " << seed << ", step " << step;
        }
    }
}

} // namespace
} // namespace sieve::service::watching
