// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A day of refreshes in a minute: the timers run faster than time. Five lists of every sort that is asked by
// a timer change again and again; nothing that the daemon holds may grow.
#include <bpf/bpf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/own_network.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/service/daemon/daemon.hpp"
#include "service/servers.hpp"
#include "service/support.hpp"
#include "unit/service/daemon/records.hpp"

namespace sieve::service {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr std::uint64_t hours = 24;
const std::vector<std::string> names{"day_file", "day_folder", "day_glob", "day_http", "day_command"};

// This many addresses; another `version`, another list.
std::string list_text(unsigned version, unsigned set) {
    std::string text;
    for (unsigned i = 0; i < 2000; i++)
        text += fmt::format("100.{}.{}.{}\n", 64 + set, (i + version) >> 8 & 255, (i + version) & 255);
    return text;
}

struct Held {
    std::size_t descriptors = 0;
    std::uint64_t memory = 0; // resident, in KiB
    std::map<std::string, int> maps{};
    std::uint32_t maps_of_program = 0;
    std::size_t files = 0; // in the state directory
};

int maps_named(const std::string& name) {
    int count = 0;
    for (std::uint32_t id = 0; ::bpf_map_get_next_id(id, &id) == 0;) {
        const UniqueFd map(::bpf_map_get_fd_by_id(id));
        bpf_map_info info{};
        std::uint32_t size = sizeof(info);
        if (map && ::bpf_obj_get_info_by_fd(map.get(), &info, &size) == 0 && name == info.name) count++;
    }
    return count;
}

class DaemonDay : public testing::Test {
  protected:
    Nginx nginx;
    Folder folder;
    control::RealKernel kernel;
    RealHostAddresses host;
    sieve::test::RecordedLog log;
    sieve::test::RecordedNotifier notifier;
    watching::Ledger ledger{{}};
    EventLoop loop = EventLoop::make().value();
    std::unique_ptr<Daemon> daemon;

    void SetUp() override {
        sigset_t signals;
        ::sigemptyset(&signals);
        for (const int signal : {SIGHUP, SIGTERM, SIGINT}) ::sigaddset(&signals, signal);
        ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
        ASSERT_TRUE(sieve::test::ip("link add sieve0 type veth peer name sieve1"));
        ASSERT_TRUE(sieve::test::ip("link set sieve0 up"));
        for (const char* name : {"state", "list.d", "glob.d"})
            ASSERT_EQ(::mkdir(folder.path(name).c_str(), 0755), 0);
        ASSERT_EQ(::chmod(folder.path("").c_str(), 0755), 0);
    }
    void TearDown() override {
        daemon.reset();
        sieve::test::take_programs_away();
        EXPECT_TRUE(sieve::test::ip("link delete sieve0"));
    }

    void write_lists(unsigned version) {
        folder.write("file.txt", list_text(version, 0));
        folder.write("list.d/a", list_text(version, 1));
        folder.write("glob.d/a.netset", list_text(version, 2));
        nginx.put("list.txt", list_text(version, 3));
        folder.write("printed", list_text(version, 4));
        ASSERT_EQ(::chmod(folder.path("printed").c_str(), 0644), 0);
    }
    void configure() {
        const std::vector<std::string> sources{
            fmt::format("\"{}\"", folder.path("file.txt")), fmt::format("\"{}/\"", folder.path("list.d")),
            fmt::format("\"{}/*.netset\"", folder.path("glob.d")),
            std::string("\"http://localhost:8080/list.txt\""),
            fmt::format("{{ command = [\"cat\", \"{}\"] }}", folder.path("printed"))};
        std::string text = fmt::format(
            "[service]\nstate-directory = \"{}\"\nlisten = \"\"\n[[interface]]\nname = \"sieve0\"\nsets = [",
            folder.path("state"));
        for (const std::string& name : names) text += fmt::format("\"{}\", ", name);
        text += "]\n";
        for (std::size_t i = 0; i < names.size(); i++)
            text += fmt::format("[set.{}]\nsources = [{}]\nrefresh = \"1h\"\n", names[i], sources[i]);
        folder.write("xdp-sieve.toml", text);
    }
    // Of the set with the fewest.
    std::uint64_t refreshes() {
        std::uint64_t fewest = UINT64_MAX;
        const watching::Record record = ledger.record();
        for (const std::string& name : names) {
            const auto found = record.sets.find(name);
            if (found == record.sets.end()) return 0;
            const auto& all = found->second.refreshes;
            fewest = std::min(fewest, std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
        }
        return fewest;
    }
    void until(std::uint64_t count) {
        std::uint64_t seen = refreshes();
        while (seen < count) {
            ASSERT_TRUE(loop.run_once(60s)) << "no event; the log:\n" << log.text();
            const std::uint64_t now = refreshes();
            if (now != seen && now % 3 == 0) write_lists(static_cast<unsigned>(now)); // a new version
            seen = now;
        }
        while (!daemon->is_idle()) ASSERT_TRUE(loop.run_once(60s));
    }

    Held held() {
        Held held;
        for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
            held.descriptors++;
        std::ifstream status("/proc/self/status");
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("VmRSS:")) held.memory = std::stoull(line.substr(6));
        for (const std::string& name : names) held.maps[name] = maps_named(name);
        if (const auto interface = kernel.find_interface("sieve0"))
            if (const auto hook = kernel.read_hook(*interface, kernel::HookPoint::xdp); hook && hook->ours) {
                const UniqueFd program(::bpf_prog_get_fd_by_id(hook->ours->id));
                bpf_prog_info info{};
                std::uint32_t size = sizeof(info);
                if (::bpf_obj_get_info_by_fd(program.get(), &info, &size) == 0)
                    held.maps_of_program = info.nr_map_ids;
            }
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path("state")))
            if (entry.is_regular_file()) held.files++;
        return held;
    }
};

TEST_F(DaemonDay, TwentyFourHoursOfRefreshesLeaveNothingBehind) {
    write_lists(0);
    configure();
    auto started = Daemon::start({loop, kernel, host, log, notifier, ledger},
                                 {.configuration = folder.path("xdp-sieve.toml"), .pace = 100'000});
    ASSERT_TRUE(started) << started.error().message;
    daemon = std::move(*started);
    until(hours / 4); // buffers and caches have their size by then
    const Held before = held();
    until(hours);
    Held after;
    // The kernel frees maps after a grace period.
    EXPECT_TRUE(await([&] {
        after = held();
        return after.maps == before.maps;
    }));
    EXPECT_EQ(after.descriptors, before.descriptors);
    EXPECT_EQ(after.maps_of_program, before.maps_of_program);
    EXPECT_EQ(after.files, before.files);
    EXPECT_LT(after.memory, before.memory + 4096) << "KiB";
    for (const auto& [name, count] : after.maps) EXPECT_EQ(count, 1) << name;
    // It was a day with news.
    const watching::Record record = ledger.record();
    for (const std::string& name : names) {
        const auto& all = record.sets.at(name).refreshes;
        EXPECT_GE(all[static_cast<std::size_t>(SetOutcome::replaced)], 4U) << name << "\n" << log.text();
        EXPECT_EQ(all[static_cast<std::size_t>(SetOutcome::failed)], 0U) << name << "\n" << log.text();
    }
    RecordProperty("memory_kib_before", static_cast<int>(before.memory));
    RecordProperty("memory_kib_after", static_cast<int>(after.memory));
    fmt::print("{} descriptors, {} to {} KiB, {} maps of the program, {} files\n", after.descriptors,
               before.memory, after.memory, after.maps_of_program, after.files);
}

} // namespace
} // namespace sieve::service
