// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Adding and removing one filter at a tc hook, whoever's it is. The kernel's answer can get lost (no memory
// for it, a signal); so callers trust only what they find at the hook afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/kernel/hooks/hook.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel::tc {

struct NewFilter {
    int program_fd = -1;
    std::uint32_t priority = 0;
    std::uint32_t handle = 0;
    bool replace = false; // the filter that has this priority and handle
};

// Adds the filter, and clsact if it is not there yet. Returns 0 or a negative errno value; -EOPNOTSUPP if the
// interface has the queueing discipline `ingress` instead, and thus no egress hook.
[[nodiscard]] int add_filter(const Interface& interface, HookPoint point, const NewFilter& filter);

// What a person can do about add_filter()'s error, or an empty text.
[[nodiscard]] std::string add_filter_remedy(int error, std::uint32_t priority);

[[nodiscard]] bool contains(const std::vector<TcFilter>& filters, const TcFilter& filter);

// Removes the filter. Succeeds if the filter is gone, whatever the kernel answered. `what` begins the error's
// text.
[[nodiscard]] Status remove_filter(const Interface& interface, HookPoint point, const TcFilter& filter,
                                   const std::string& what);

} // namespace sieve::kernel::tc
