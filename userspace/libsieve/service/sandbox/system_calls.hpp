// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The system calls that a confined child may make.
#pragma once

#include "libsieve/service/sandbox/child_role.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Loads the role's seccomp filter; does nothing for a command. no_new_privs must be set, and the process must
// have one thread.
[[nodiscard]] Status allow_system_calls_of(ChildRole role);

} // namespace sieve::service
