// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/unload.hpp"

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve::control {

namespace {

// The program is gone. What its replies needed goes, too, unless another hook of the interface needs it.
Status leave(Kernel& kernel, const kernel::Interface& interface) {
    if (const Status ended = kernel.end_replies(interface); !ended)
        return unfinished("the program is gone, but what its replies needed is still there", ended.error());
    return {};
}

} // namespace

Result<Unloaded> unload(Kernel& kernel, const HookName& name, const Observer& observer) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, hooks_of(kernel, name));
    if (hooks.size() != 1) { // find_ours() decides, or has the error
        SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name));
        SIEVE_TRY(kernel.detach(hook));
        SIEVE_TRY(leave(kernel, hook.interface));
        return Unloaded{.point = hook.point, .program_id = hook.ours->id};
    }
    SIEVE_TRY(kernel.detach(hooks.front()));
    SIEVE_TRY(leave(kernel, hooks.front().interface));
    return Unloaded{.point = hooks.front().point, .program_id = hooks.front().ours->id};
}

} // namespace sieve::control
