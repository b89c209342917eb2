// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The program that notes flows: it sees what leaves an interface, and writes into a flow memory what this
// host began. It is a filter of its own at tc's egress hook, behind all others, so it needs no table there,
// and it notes nothing that a filter before it drops. It changes no packet's fate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <sieve/flow.h>

#include "libsieve/kernel/hooks/flow_memory.hpp"
#include "libsieve/kernel/hooks/hook.hpp"
#include "libsieve/kernel/host/interface.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// Behind filters that were added without a priority, too, which get 49152 and below.
inline constexpr std::uint32_t noting_priority = 50000;

// The noting program of an interface, as it was read.
struct Noting {
    Interface interface;
    TcFilter filter;
    std::uint32_t memory_id = 0; // the flow memory's map; 0: none
    sieve_note_counts counts{};  // since it was attached, summed over the CPUs
    std::uint64_t own_ports = 0; // as tell_own_ports() last wrote them
    // Others' filters that are asked before it. It does not see the packets that they accept.
    std::vector<TcFilter> before{};
};

// The noting program of an interface in this version's layout; nothing if there is none. Error other_version:
// there is one of another version.
[[nodiscard]] Result<std::optional<Noting>> read_noting(const Interface& interface);

// All in this network namespace. Interfaces whose noting program cannot be read are left out.
[[nodiscard]] std::vector<Noting> all_notings();

// Attaches the program, which writes into this memory from then on. Where it is attached already, it gets
// this memory and keeps its counts; one of another version is replaced. Errors as those of attach(): whatever
// could not be done changed nothing, but for kind unfinished. An interface whose packets the parser cannot
// read is refused. The caller holds the Lock.
Result<Noting> attach_noting(const Interface& interface, const FlowMemory& memory);

// Tells the program which ports the kernel gives to sockets of this network namespace that ask for none
// (net.ipv4.ip_local_port_range), if that has changed. In vain if the program has gone. Any process may call
// it while packets flow.
void tell_own_ports(const Noting& noting);

// Detaches it. No error if there is none. The caller holds the Lock.
[[nodiscard]] Status detach_noting(const Interface& interface);

} // namespace sieve::kernel
