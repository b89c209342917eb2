// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/lock.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <thread>

#include <fmt/core.h>

#include "libsieve/kernel/refusal.hpp"

namespace sieve::kernel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr char address_name[] = "xdp-sieve.controller";

struct Address {
    sockaddr_un address{};
    socklen_t length = 0;
};

Address lock_address() {
    Address result;
    result.address.sun_family = AF_UNIX;
    // A leading NUL makes the address abstract; its length ends it.
    std::memcpy(result.address.sun_path + 1, address_name, sizeof(address_name) - 1);
    result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + sizeof(address_name));
    return result;
}

UniqueFd stream_socket() {
    return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

// "process 123 (xdp-sieve, user 0)".
std::string describe(int connection) {
    ucred peer{};
    socklen_t length = sizeof(peer);
    if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return "another process";
    std::string name = "?";
    if (std::ifstream comm(fmt::format("/proc/{}/comm", peer.pid)); comm) std::getline(comm, name);
    return fmt::format("process {} ({}, user {})", peer.pid, name, peer.uid);
}

// Waits until the holder lets go or the deadline; the connection ends when the listening socket does.
void wait_for_end(int connection, Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waited{.fd = connection, .events = POLLIN, .revents = 0};
    if (left.count() > 0) ::poll(&waited, 1, static_cast<int>(left.count()));
}

} // namespace

Result<Lock> Lock::take(std::chrono::milliseconds patience,
                        const std::function<void(const std::string& holder)>& waiting) {
    const auto deadline = Clock::now() + patience;
    const Address lock = lock_address();
    const auto* address = reinterpret_cast<const sockaddr*>(&lock.address);
    std::string holder;
    for (;;) {
        UniqueFd socket = stream_socket();
        if (!socket) return refusal("a socket for the lock among controllers", errno);
        if (::bind(socket.get(), address, lock.length) == 0) {
            if (::listen(socket.get(), SOMAXCONN) != 0) return refusal("the lock among controllers", errno);
            return Lock(std::move(socket));
        }
        if (errno != EADDRINUSE) return refusal("the lock among controllers", errno);
        if (Clock::now() >= deadline)
            return kernel_refused(fmt::format("another controller is at work: {} has held the lock for over "
                                              "{:.0f} s; wait for it or end it",
                                              holder.empty() ? "another process" : holder,
                                              std::chrono::duration<double>(patience).count()));
        // Refused if the holder has not come to listen yet, or has just gone.
        const UniqueFd connection = stream_socket();
        if (connection && ::connect(connection.get(), address, lock.length) == 0) {
            if (std::string now = describe(connection.get()); now != holder) {
                holder = std::move(now);
                if (waiting) waiting(holder);
            }
            wait_for_end(connection.get(), deadline);
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
}

} // namespace sieve::kernel
