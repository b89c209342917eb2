// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/private_network.hpp"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::bench {

namespace {

Status enter() {
    if (::unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_FS) != 0)
        return kernel::refusal("a network namespace for the benchmark", errno);
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0)
        return kernel::refusal("mounting /sys for the benchmark", errno);
    // Keep the kernel's own IPv6 packets out.
    std::ofstream("/proc/sys/net/ipv6/conf/all/disable_ipv6") << 1;
    std::ofstream("/proc/sys/net/ipv6/conf/default/disable_ipv6") << 1;
    return {};
}

constexpr const char* usual_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// What a command reads and writes. A stream that is not redirected leads to nothing.
class Redirections {
  public:
    Redirections(const std::string& input, const std::string& output) {
        posix_spawn_file_actions_init(&actions_);
        posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, path(input), O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, path(output), O_WRONLY | O_CREAT | O_TRUNC,
                                         0600);
    }
    Redirections(const Redirections&) = delete;
    Redirections& operator=(const Redirections&) = delete;
    ~Redirections() { posix_spawn_file_actions_destroy(&actions_); }

    [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

  private:
    static const char* path(const std::string& file) { return file.empty() ? "/dev/null" : file.c_str(); }

    posix_spawn_file_actions_t actions_{};
};

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
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    const Redirections redirections(input, output);
    const auto start = std::chrono::steady_clock::now();
    // Do not use fork(): copying the page tables of a process with large sets takes milliseconds.
    pid_t child = 0;
    if (const int error =
            ::posix_spawnp(&child, pointers[0], redirections.get(), nullptr, pointers.data(), environ);
        error != 0)
        return kernel::refusal("starting " + arguments[0], error);
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
