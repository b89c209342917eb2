// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Makes something scarce for the length of a scope: file descriptors, address space.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

namespace sieve::test {

// Lowers a soft limit of this process, and restores it at the end.
class Limit {
  public:
    Limit(__rlimit_resource resource, rlim_t most) : resource_(resource) {
        if (::getrlimit(resource_, &before_) != 0) throw std::runtime_error("getrlimit failed");
        const rlimit lower{most, before_.rlim_max};
        if (::setrlimit(resource_, &lower) != 0) throw std::runtime_error("setrlimit failed");
    }
    ~Limit() { ::setrlimit(resource_, &before_); }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

  private:
    __rlimit_resource resource_;
    rlimit before_{};
};

// The limit of RLIMIT_NOFILE that leaves this many descriptors to open.
inline rlim_t descriptors_left(std::size_t count) {
    // libbpf probes the kernel at its first calls, and remembers for good that a probe failed. So it probes
    // now.
    if (const int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sieve_probe", 4, 4, 1, nullptr); map >= 0)
        ::close(map);
    libbpf_num_possible_cpus();
    std::vector<int> opened;
    while (opened.size() <= count) opened.push_back(::fcntl(STDERR_FILENO, F_DUPFD, 0));
    const int first_forbidden = opened.back();
    for (const int fd : opened) ::close(fd);
    if (first_forbidden < 0) throw std::runtime_error("no descriptor is free");
    return static_cast<rlim_t>(first_forbidden);
}

// The limit of RLIMIT_AS that leaves this many bytes of address space.
inline rlim_t addresses_left(std::size_t bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
}

} // namespace sieve::test
