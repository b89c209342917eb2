// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/process_usage.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

namespace sieve::service::watching {

namespace {

// When this machine started, in seconds since 1970.
double boot_time() {
    std::ifstream file("/proc/stat");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("btime ")) return std::stod(line.substr(6));
    return 0;
}

// /proc/self/stat; times in ticks, `started` since the machine started.
struct OwnStat {
    double user = 0, system = 0, threads = 0, started = 0, virtual_bytes = 0, pages = 0;
};

std::optional<OwnStat> read_own_stat() {
    std::ifstream file("/proc/self/stat");
    std::string text;
    std::getline(file, text);
    // Fields 1 and 2 are the process id and its name in parentheses, which may hold anything: proc(5).
    const std::size_t end = text.rfind(')');
    if (end == std::string::npos) return std::nullopt;
    std::istringstream rest(text.substr(end + 1));
    OwnStat stat;
    std::string skipped;
    for (int field = 3; field < 14; field++) rest >> skipped;
    rest >> stat.user >> stat.system; // 14 and 15
    for (int field = 16; field < 20; field++) rest >> skipped;
    rest >> stat.threads >> skipped >> stat.started >> stat.virtual_bytes >> stat.pages; // 20 to 24
    if (!rest) return std::nullopt;
    return stat;
}

double ticks_per_second() {
    return static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
}

std::uint64_t count_open_files() {
    std::error_code error;
    std::filesystem::directory_iterator folder("/proc/self/fd", error), end;
    std::uint64_t count = 0;
    for (; !error && folder != end; folder.increment(error)) count++;
    return count == 0 ? 0 : count - 1; // one of them is the folder itself
}

} // namespace

ProcessUsage read_process_usage() {
    ProcessUsage usage;
    if (const std::optional<OwnStat> stat = read_own_stat()) {
        usage.threads = static_cast<std::uint64_t>(stat->threads);
        usage.virtual_bytes = static_cast<std::uint64_t>(stat->virtual_bytes);
        usage.cpu_seconds = (stat->user + stat->system) / ticks_per_second();
        usage.started = boot_time() + stat->started / ticks_per_second();
        usage.resident_bytes =
            static_cast<std::uint64_t>(stat->pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    }
    usage.open_files = count_open_files();
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) usage.most_files = limit.rlim_cur;
    rusage children{};
    if (::getrusage(RUSAGE_CHILDREN, &children) == 0) {
        const auto seconds = [](const timeval& time) {
            return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
        };
        usage.children_cpu_seconds = seconds(children.ru_utime) + seconds(children.ru_stime);
        usage.children_most_resident_bytes = static_cast<std::uint64_t>(children.ru_maxrss) * 1024;
    }
    return usage;
}

std::chrono::milliseconds time_since_start() {
    const std::optional<OwnStat> stat = read_own_stat();
    timespec now{};
    if (!stat || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return {};
    const double uptime = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    return std::chrono::milliseconds(std::lround(1e3 * (uptime - stat->started / ticks_per_second())));
}

std::chrono::duration<double, std::milli> processor_time() {
    timespec spent{};
    if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) != 0) return {};
    return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

} // namespace sieve::service::watching
