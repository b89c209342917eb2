// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lists that a command prints.
#include <poll.h>
#include <sys/eventfd.h>

#include <gtest/gtest.h>

#include "libsieve/service/sources/gather.hpp"
#include "service/support.hpp"

namespace sieve::service {
namespace {

using namespace test;

auto run(std::vector<std::string> arguments, const SandboxSettings& settings = quick_settings()) {
    return gather(CommandOrigin{std::move(arguments)}, nullptr, settings);
}
auto shell(const std::string& script, const SandboxSettings& settings = quick_settings()) {
    return run({"sh", "-c", script}, settings);
}
std::string printed(const std::string& script) {
    const auto done = shell(script);
    return done ? content_of(done->content->get()) : done.error().error.message;
}
std::string error_of(const std::string& script, const SandboxSettings& settings = quick_settings()) {
    const auto done = shell(script, settings);
    return done ? "succeeded" : done.error().error.message;
}

TEST(Command, WhatItPrintsIsTheList) {
    const auto done = run({"printf", "%s\\n", "192.0.2.1", "$HOME * ;"});
    ASSERT_TRUE(done) << done.error().error.message;
    EXPECT_EQ(content_of(done->content->get()), "192.0.2.1\n$HOME * ;\n");
    EXPECT_EQ(done->provenance.source.substr(0, 16), "command printf #");
    EXPECT_EQ(printed("seq 1 100000 | tail -n 1"), "100000\n");
}

TEST(Command, TheSameOutputIsUnchanged) {
    const auto first = shell("echo 192.0.2.1");
    ASSERT_TRUE(first);
    const CommandOrigin same{{"sh", "-c", "echo 192.0.2.1"}};
    const auto second = gather(same, &first->provenance, quick_settings());
    ASSERT_TRUE(second);
    EXPECT_TRUE(second->unchanged);
}

TEST(Command, ItsFailureIsTold) {
    EXPECT_EQ(error_of("echo 192.0.2.1; echo first >&2; echo the database is away >&2; exit 3"),
              "command sh: ended with status 3 (the database is away)");
    EXPECT_EQ(error_of("kill -SEGV $$"), "command sh: was ended by signal 11 (SIGSEGV)");
    const auto missing = run({"no-such-program"});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().error.message,
              "command no-such-program: cannot be started: No such file or directory");
}

TEST(Command, ItHasNoRights) {
    EXPECT_EQ(printed("grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | tr -d '\\t'"),
              "CapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\n");
    EXPECT_EQ(printed("id -u; id -g; id -G; pwd; head -c 1 | wc -c"), "65534\n65534\n65534\n/\n0\n");
    // No descriptor of this process is open there. The last one is the directory itself.
    const UniqueFd secret = memory_file("secret");
    EXPECT_EQ(printed("ls /proc/self/fd | tr '\\n' ' '"), "0 1 2 3 ");
}

TEST(Command, ItsOutputHasALimit) {
    SandboxSettings settings = quick_settings();
    settings.limits.source_bytes = 100000;
    EXPECT_EQ(error_of("yes", settings),
              "command sh: printed more than 100000 bytes, the limit, and was ended");
}

TEST(Command, ItsTimeHasALimitAndNothingOfItStays) {
    const Folder folder;
    SandboxSettings settings = quick_settings();
    settings.limits.fetch = std::chrono::seconds(5); // by then it has said something, on a busy machine, too
    std::atomic<pid_t> leader = 0;
    settings.started = [&](ChildRole, pid_t pid) { leader = pid; };
    EXPECT_EQ(error_of("sleep 1000 & echo waiting >&2; wait", settings),
              "command sh: took longer than 5 s and was ended (waiting)");
    // Its process group is gone.
    EXPECT_TRUE(await([&] { return ::kill(-leader, 0) != 0; }));
    // Background processes that it left end with the group, and nobody waits for them.
    EXPECT_EQ(printed("sleep 1000 & echo 192.0.2.1"), "192.0.2.1\n");
}

TEST(Command, ItCanBeCalledOff) {
    SandboxSettings settings = quick_settings();
    const UniqueFd cancel(::eventfd(0, EFD_CLOEXEC));
    settings.cancel = cancel.get();
    settings.started = [&](ChildRole, pid_t) { (void)::eventfd_write(cancel.get(), 1); };
    EXPECT_EQ(error_of("exec sleep 1000", settings),
              "command sh: was ended because the refresh was called off");
}

} // namespace
} // namespace sieve::service
