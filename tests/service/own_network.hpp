// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the programs of tests with real servers share: they need root, and run in a network namespace of their
// own. This program also is what the sandbox executes for its children.
#pragma once

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <span>

#include <gtest/gtest.h>

#include "libsieve/service/sandbox/child_main.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::test {

inline bool enter_own_network() {
    if (::unshare(CLONE_NEWNET) != 0) return false;
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loopback{};
    std::strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    return socket && ::ioctl(socket.get(), SIOCSIFFLAGS, &loopback) == 0;
}

// The body of main(). `tasks`: what children of this program can do besides the service's own work.
inline int run_in_own_network(int argc, char** argv, std::span<const service::ChildTask> tasks = {}) {
    if (const auto done = service::run_as_child(argc, argv, tasks)) return *done;
    testing::InitGoogleTest(&argc, argv);
    if (!enter_own_network()) {
        std::fprintf(stderr, "%s: a network namespace of its own needs root\n", argv[0]);
        return 1;
    }
    // Writing to a client that has gone must not end a server.
    (void)std::signal(SIGPIPE, SIG_IGN);
    return RUN_ALL_TESTS();
}

} // namespace sieve::test
