// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One controller at a time.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "libsieve/util/result.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve::kernel {

// The right to change what runs on the interfaces of this network namespace. It is an abstract socket
// address, of which each network namespace has its own: no file is left behind, and the kernel takes it back
// from a controller that dies. The holder listens, so that whoever waits can ask the kernel who it is.
class Lock {
  public:
    // Waits up to `patience`; `waiting` is told once who is being waited for.
    static Result<Lock> take(std::chrono::milliseconds patience = std::chrono::seconds(10),
                             const std::function<void(const std::string& holder)>& waiting = {});

  private:
    explicit Lock(UniqueFd socket) : socket_(std::move(socket)) {}

    UniqueFd socket_;
};

} // namespace sieve::kernel
