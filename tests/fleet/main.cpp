// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tests of the fleet with real etcd and nginx. They need root, and run in a separate network
// namespace.
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include <gtest/gtest.h>

#include "libsieve/fleet/fleet_tasks.hpp"
#include "libsieve/service/child_main.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace {

bool enter_own_network() {
    if (::unshare(CLONE_NEWNET) != 0) return false;
    const sieve::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loopback{};
    std::strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    return socket && ::ioctl(socket.get(), SIOCSIFFLAGS, &loopback) == 0;
}

} // namespace

int main(int argc, char** argv) {
    if (const auto done = sieve::service::run_as_child(argc, argv, sieve::fleet::fleet_tasks())) return *done;
    testing::InitGoogleTest(&argc, argv);
    if (!enter_own_network()) {
        std::fputs("fleet-tests: a network namespace of its own needs root\n", stderr);
        return 1;
    }
    // Writing to a client that has gone must not end a server.
    (void)std::signal(SIGPIPE, SIG_IGN);
    return RUN_ALL_TESTS();
}
