// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/end_probation.hpp"

#include <gtest/gtest.h>

#include "libsieve/control/table/apply.hpp"
#include "libsieve/control/table/remove.hpp"
#include "libsieve/control/table/swap.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using namespace std::chrono_literals;
using test::FakeKernel;
using test::Files;

const HookName eth0{.interface = "eth0"};

class EndProbation : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    TableSpec spec{.interface = "eth0", .sets = {Files::set("a", files.feed("a", {"10.0.0.1"}))}};
    const Safety careful{.confirm_within = 60s};
};

TEST_F(EndProbation, AChangeIsPutOnProbationAndKept) {
    ASSERT_TRUE(apply(kernel, spec, {}, careful));
    EXPECT_EQ(kernel.running.table.probation, 60s);
    const auto ended = end_probation(kernel, eth0, ProbationEnd::keep, {});
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->size(), 1U);
    EXPECT_EQ(kernel.count("confirm"), 1U);
    EXPECT_EQ(end_probation(kernel, eth0, ProbationEnd::keep, {}).error().kind, ErrorKind::no);
    ASSERT_TRUE(swap(kernel, eth0, spec.sets[0], {}, careful));
    ASSERT_TRUE(end_probation(kernel, {}, ProbationEnd::take_back, {}));
    EXPECT_EQ(kernel.count("take back"), 1U);
    ASSERT_TRUE(remove(kernel, eth0, "a", {}, careful));
    EXPECT_TRUE(kernel.running.table.probation);
}

// Every change is refused, and before any work is done.
TEST_F(EndProbation, MeanwhileNothingElseChanges) {
    ASSERT_TRUE(apply(kernel, spec, {}, careful));
    kernel.steps.clear();
    const auto refused = [&](const Error& error) {
        EXPECT_EQ(error.kind, ErrorKind::unconfirmed);
        EXPECT_EQ(error.facts.interface, "eth0");
        EXPECT_EQ(kernel.count("bring in a"), 0U);
    };
    refused(apply(kernel, spec, {}).error());
    refused(swap(kernel, eth0, spec.sets[0], {}).error());
}

// Of two hooks, one is confirmed, and the other refuses: the error says that something was done.
TEST_F(EndProbation, OneOfTwoIsNotNone) {
    ASSERT_TRUE(apply(kernel, spec, {}, careful));
    kernel.at(kernel::HookPoint::ingress) = kernel.running;
    kernel.before("confirm", [&](const std::string& step) -> Status {
        return kernel.count(step) == 0 ? Status() : kernel_refused("no");
    });
    const auto ended = end_probation(kernel, eth0, ProbationEnd::keep, {});
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().kind, ErrorKind::unfinished) << ended.error().message;
    EXPECT_EQ(kernel.count("confirm"), 1U);
    EXPECT_EQ(end_probation(kernel, eth0, ProbationEnd::keep, {}).error().kind, ErrorKind::kernel_refused)
        << "nothing was done";
}

TEST_F(EndProbation, ItCanBeTooLate) {
    EXPECT_EQ(end_probation(kernel, eth0, ProbationEnd::keep, {}).error().kind, ErrorKind::not_attached);
    EXPECT_EQ(end_probation(kernel, {}, ProbationEnd::keep, {}).error().kind, ErrorKind::no);
    ASSERT_TRUE(apply(kernel, spec, {}));
    kernel.running.table.taken_back = true;
    expect_error(end_probation(kernel, eth0, ProbationEnd::keep, {}), ErrorKind::no);
}

// A program that the change replaces would not come back.
TEST_F(EndProbation, AnotherProgramRulesItOut) {
    kernel.running.foreign = true;
    spec.force = true;
    const auto refused = apply(kernel, spec, {}, careful);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
    EXPECT_FALSE(kernel.changed());
    EXPECT_TRUE(apply(kernel, spec, {}));
}

} // namespace
} // namespace sieve::control
