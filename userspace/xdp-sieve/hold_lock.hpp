// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The lock among controllers, as verbs take it.
#pragma once

#include "libsieve/kernel/lock.hpp"
#include "xdp-sieve/context.hpp"

namespace sieve::cli {

// Says, unless quiet, who is being waited for.
inline Result<kernel::Lock> hold_lock(const Context& context) {
    return kernel::Lock::take(std::chrono::seconds(10), [&context](const std::string& holder) {
        remark(context, "waiting for " + holder);
    });
}

} // namespace sieve::cli
