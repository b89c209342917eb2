// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Gives up, for good and before any hostile byte is read, whatever a child does not need.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "libsieve/service/sandbox/child_role.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

struct SandboxUser {
    uid_t uid = 65534;
    gid_t gid = 65534;
};

// The user of that name; without a name `xdp-sieve` if there is such a user, else `nobody`. bad_input if
// there is none.
[[nodiscard]] Result<SandboxUser> find_sandbox_user(const std::string& name = {});

// Whether this process may do what an ordinary user may not: it is root's, or has a capability.
[[nodiscard]] bool has_privileges();

struct Confinement {
    ChildRole role = ChildRole::build;
    SandboxUser user{};
    std::uint64_t memory_bytes = 0;    // RLIMIT_DATA; 0: no limit of its own
    std::uint64_t file_bytes = 0;      // RLIMIT_FSIZE: of each file that it writes
    std::chrono::seconds processor{0}; // likewise
    std::uint32_t descriptors = 64;    // RLIMIT_NOFILE
    int nice = 0;
    pid_t parent = 0; // whose end is the child's end; 0: nobody's
};

// Confines the calling process, which must have one thread. Afterwards:
// - limits on memory, files, processor time and descriptors hold, and no core is dumped;
// - it is the user, without further groups, if the process could become one (it was root, or has CAP_SETUID);
// a
//   process of an ordinary user stays what it was;
// - all capability sets are empty, the bounding set too where that was allowed, and no_new_privs is set;
// - it dies with its parent, if one was named;
// - fetch and build: a seccomp filter lets through what the role needs. All else fails with EPERM; calls that
//   only an attacker makes (execve, ptrace, bpf, mount ...) kill the process.
[[nodiscard]] Status confine(const Confinement& confinement);

} // namespace sieve::service
