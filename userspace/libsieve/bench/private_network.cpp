// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/private_network.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "libsieve/kernel/refusal.hpp"

namespace sieve::bench {

namespace {

Status enter() {
    if (::unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_FS) != 0)
        return kernel::refusal("a network namespace for the benchmark", errno);
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0)
        return kernel::refusal("mounting /sys for the benchmark", errno);
    // No packets but the benchmark's.
    std::ofstream("/proc/sys/net/ipv6/conf/all/disable_ipv6") << 1;
    std::ofstream("/proc/sys/net/ipv6/conf/default/disable_ipv6") << 1;
    return {};
}

constexpr const char* usual_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// In the child: from here on there is no way back.
[[noreturn]] void become(const std::vector<std::string>& arguments, const std::string& input,
                         const std::string& output) {
    const int in = ::open(input.empty() ? "/dev/null" : input.c_str(), O_RDONLY);
    const int out = ::open(output.empty() ? "/dev/null" : output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (in < 0 || out < 0 || ::dup2(in, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0) ::_exit(126);
    std::vector<char*> pointers;
    for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    ::execvp(pointers[0], pointers.data());
    ::_exit(127);
}

} // namespace

Status in_private_network(const std::function<Status()>& work) {
    Status result;
    std::thread thread([&] {
        result = enter();
        if (result) result = work();
    });
    thread.join();
    return result;
}

Result<double> run_tool(const std::vector<std::string>& arguments, const std::string& input,
                        const std::string& output) {
    const auto start = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    if (child < 0) return kernel::refusal("starting " + arguments[0], errno);
    if (child == 0) become(arguments, input, output);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) return kernel_refused(fmt::format("`{}` failed", fmt::join(arguments, " ")));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool have_tool(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::string directories = path == nullptr ? usual_path : path;
    directories += ':';
    for (std::size_t begin = 0; begin < directories.size();) {
        const std::size_t end = directories.find(':', begin);
        if (::access((directories.substr(begin, end - begin) + "/" + name).c_str(), X_OK) == 0) return true;
        begin = end + 1;
    }
    return false;
}

void pin_to_processor(unsigned processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    ::sched_setaffinity(0, sizeof(set), &set);
}

} // namespace sieve::bench
