// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where packets are redirected to: targets as people name them, and the kernel's maps of them.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <sieve/policy.h>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

struct Target {
    sieve_action action = SIEVE_ACTION_REDIRECT_DEVICE; // or SIEVE_ACTION_REDIRECT_CPU
    std::uint32_t number = 0;                           // the interface's index, the CPU's number
};

// Takes "cpu:3", or the name of an interface in this network namespace. An error if there is no such target.
[[nodiscard]] Result<Target> find_target(const std::string& text);

// The target as find_target takes it. An interface that no longer exists is named by its index.
[[nodiscard]] std::string target_name(const Target& target);

// Whether the target exists and takes packets. Only for display.
enum class TargetState { ready, down, gone };
[[nodiscard]] TargetState target_state(const Target& target);

// "ready", "down" or "gone".
[[nodiscard]] const char* target_state_name(TargetState state);

// A map of these interfaces. The kernel removes an entry together with its interface. Interfaces that were
// targets `before` may no longer exist; they get no entry.
[[nodiscard]] Result<UniqueFd> create_device_map(const std::set<std::uint32_t>& indices,
                                                 const std::set<std::uint32_t>& before);

// A map of CPUs, each with a kernel thread and a queue of SIEVE_CPU_QUEUE packets.
[[nodiscard]] Result<UniqueFd> create_cpu_map(const std::set<std::uint32_t>& cpus,
                                              const std::set<std::uint32_t>& before);

} // namespace sieve::kernel
