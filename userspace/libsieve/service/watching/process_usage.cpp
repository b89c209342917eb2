// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/watching/process_usage.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
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
    std::ifstream file("/proc/self/stat");
    std::string stat;
    std::getline(file, stat);
    // Fields 1 and 2 are the process id and its name in parentheses, which may hold anything: proc(5).
    if (const std::size_t end = stat.rfind(')'); end != std::string::npos) {
        std::istringstream rest(stat.substr(end + 1));
        std::string skipped;
        double user = 0, system = 0, started = 0, pages = 0;
        for (int field = 3; field < 14; field++) rest >> skipped;
        rest >> user >> system; // 14 and 15
        for (int field = 16; field < 20; field++) rest >> skipped;
        rest >> usage.threads >> skipped >> started >> usage.virtual_bytes >> pages; // 20 to 24
        const auto ticks = static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
        usage.cpu_seconds = (user + system) / ticks;
        usage.started = boot_time() + started / ticks;
        usage.resident_bytes =
            static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
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

} // namespace sieve::service::watching
