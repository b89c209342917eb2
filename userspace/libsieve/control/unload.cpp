// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/unload.hpp"

#include "libsieve/control/hold_lock.hpp"

namespace sieve::control {

Result<std::uint32_t> unload(Kernel& kernel, const HookName& name, const Observer& observer) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Interface interface, kernel.find_interface(name.interface));
    SIEVE_ASSIGN(const kernel::Hook hook, kernel.read_hook(interface, name.point));
    if (!hook.ours) SIEVE_TRY(kernel::refuse_unless_ours(hook));
    SIEVE_TRY(kernel.detach(hook));
    return hook.ours->id;
}

} // namespace sieve::control
