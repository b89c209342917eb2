// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What an unprivileged child is for. The role decides what the child may ask of the kernel.
#pragma once

#include <cstdint>

namespace sieve::service {

enum class ChildRole : std::uint8_t {
    fetch,   // downloads: may use the network and read files
    command, // runs a program of the operator's choice: no filter of system calls fits all programs
    build, // unpacks, parses, builds, joins: descriptors that it was given, memory, threads, and nothing else
};

} // namespace sieve::service
