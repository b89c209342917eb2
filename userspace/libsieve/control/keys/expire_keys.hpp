// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Takes keys out that were inserted for a time which is over. No packet looks at the time: such a key matches
// until a controller takes it out.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct ExpiredKeys {
    HookName hook; // with interface and point
    std::string set{};
    std::uint64_t taken_out = 0;
    // Keys that stay in the filter: an earlier controller died while it deleted them, and nobody knows
    // whether it did. To delete them could remove another key.
    std::uint64_t unsure = 0;
};

// Does this for every set of the hooks that the name covers. The result has the sets that had such keys.
// Takes the lock only if there are any. Errors: those of the lock and of reading what is in force;
// other_version if an interface is named whose program cannot be read (without a name, such programs are left
// out); `unfinished` if only some keys were taken out.
[[nodiscard]] Result<std::vector<ExpiredKeys>> expire_keys(Kernel& kernel, const HookName& name,
                                                           const Observer& observer);

// The same for the sets of one hook. The caller holds the lock.
[[nodiscard]] Result<std::vector<ExpiredKeys>> expire_keys_at(Kernel& kernel, const kernel::Hook& hook);

// How long until the first key ends at the hooks that the name covers: for a caller that waits. Nothing if no
// key has an end. Errors: those of reading what is in force.
[[nodiscard]] Result<std::optional<std::chrono::nanoseconds>> time_to_next_end(Kernel& kernel,
                                                                               const HookName& name);

} // namespace sieve::control
