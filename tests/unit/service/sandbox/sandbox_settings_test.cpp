// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox/sandbox_settings.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "unit/messages.hpp"

namespace sieve::service {
namespace {

using std::chrono::seconds;

SandboxSettings settings_of_a_test() {
    SandboxSettings settings;
    settings.user = {11, 12};
    settings.limits.source_bytes = 1;
    settings.limits.unpacked_bytes = 3;
    settings.limits.image_bytes = 2;
    settings.limits.fetch = seconds(5);
    settings.limits.build = seconds(7);
    settings.limits.memory_bytes = std::uint64_t{9} << 20;
    settings.limits.processor = seconds(13);
    settings.limits.nice = 4;
    settings.cancel = 99;
    return settings;
}

void expect_child(const AnyOrder& order, ChildRole role, std::uint64_t file_bytes, seconds time_limit) {
    const SandboxSettings settings = settings_of_a_test();
    const ChildOrder child = child_for(settings, order, {40, 41});
    EXPECT_EQ(child.role, role);
    EXPECT_EQ(child.time_limit, time_limit);
    EXPECT_EQ(child.cancel, 99);
    EXPECT_EQ(child.descriptors, (std::vector<int>{40, 41}));
    const auto sent = read_order(child.message);
    ASSERT_TRUE(sent) << sent.error().message;
    EXPECT_EQ(sent->order.index(), order.index());
    const Confinement& confinement = sent->confinement;
    EXPECT_EQ(confinement.role, role);
    EXPECT_EQ(confinement.user.uid, 11U);
    EXPECT_EQ(confinement.user.gid, 12U);
    EXPECT_EQ(confinement.memory_bytes, std::uint64_t{9} << 20);
    EXPECT_EQ(confinement.file_bytes, file_bytes);
    EXPECT_EQ(confinement.processor, seconds(13));
    EXPECT_EQ(confinement.nice, 4);
    EXPECT_EQ(confinement.parent, ::getpid());
    EXPECT_GE(confinement.descriptors, 64U + 2U);
}

TEST(SandboxSettings, AChildHasTheLimitsOfItsRole) {
    expect_child(FetchOrder{}, ChildRole::fetch, 1, seconds(5 + 10)); // libcurl ends a download before that
    expect_child(TaskOrder{}, ChildRole::fetch, 1, seconds(5 + 10));
    expect_child(CommandOrder{}, ChildRole::command, 1, seconds(5));
    expect_child(ListOrder{}, ChildRole::build, 3, seconds(7));
    expect_child(ReadOrder{}, ChildRole::build, 3, seconds(7));
    expect_child(BuildOrder{}, ChildRole::build, 3, seconds(7));
    expect_child(JoinOrder{}, ChildRole::build, 3, seconds(7));
}

class RunToEnd : public testing::Test {
  protected:
    // What is said of a child that ended so.
    std::string said(const ChildEnd& end) {
        SandboxSettings settings = settings_of_a_test();
        settings.run = [&](const ChildOrder&) { return end; };
        const auto done = run_to_end<WorkDone>(settings, child_for(settings, BuildOrder{}, {}), "building");
        return done ? "done" : done.error().error.message;
    }
};

TEST_F(RunToEnd, SaysWhatBecameOfAChildWithoutAReport) {
    ChildEnd end;
    end.report = write_report(WorkDone{});
    EXPECT_EQ(said(end), "done");
    end.number = 3;
    expect_says(said(end)); // whatever it reported
    end.way = ChildEnd::Way::time_limit;
    expect_says(said(end));
    end = {};
    expect_says(said(end));
}

TEST_F(RunToEnd, ReportedFailuresComeAsTheyAre) {
    ChildEnd end;
    end.report = write_failure(Error{ErrorKind::bad_input, "line 3 is none", {}});
    EXPECT_EQ(said(end), "line 3 is none");
    end.report = write_report(ListDone{});
    expect_says(said(end));
}

TEST_F(RunToEnd, ALackOfMemoryNamesTheLimit) {
    ChildEnd end;
    end.report = write_failure(Error{ErrorKind::out_of_memory, "there is not enough memory", {}});
    end.at = "reading a.txt";
    expect_says(said(end));
}

} // namespace
} // namespace sieve::service
