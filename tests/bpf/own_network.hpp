// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A network namespace that lasts as long as a test body.
#pragma once

#include <sched.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "libsieve/kernel/hooks/attach.hpp"

namespace sieve::test {

// libxdp pins programs that share a hook, and pins outlive a namespace.
inline void take_programs_away() {
    for (const kernel::Interface& interface : kernel::all_interfaces())
        if (const auto hook = kernel::read_hook(interface); hook && hook->ours) // tc's filters go too
            if (const auto done = kernel::detach(*hook); !done) ADD_FAILURE() << done.error().message;
}

// Runs the body in a thread that has its own network namespace, so that the body disturbs neither the
// machine's interfaces nor a controller at work there. The namespace and all its content go when the thread
// ends, however the body ends.
template <class Body>
void in_own_network(Body body) {
    std::thread([&body] {
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << "tests of the kernel side need root";
        try {
            body();
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
        take_programs_away();
    }).join();
}

// Runs `ip ...` in the namespace of the calling thread; returns true on success.
inline bool ip(const std::string& arguments) {
    return std::system(("ip " + arguments + " 2>/dev/null").c_str()) == 0;
}

} // namespace sieve::test
