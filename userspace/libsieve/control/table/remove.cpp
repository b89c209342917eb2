// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/remove.hpp"

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/control/safety/table_guard.hpp"

namespace sieve::control {

Result<Removed> remove(Kernel& kernel, const HookName& name, const std::string& set, const Observer& observer,
                       const Safety& safety, bool force) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(TableWithSet now, table_with(kernel, hook, set));
    now.table.sets.erase(now.table.sets.begin() + static_cast<std::ptrdiff_t>(now.index));
    now.table.probation = safety.confirm_within;
    const kernel::TableInForce before = kernel.read_table(hook);
    if (!force) SIEVE_TRY(refuse_closing(name.interface, before, now.table));
    SIEVE_TRY(refuse_lockout(kernel, hook.interface.name, hook.point, {.table = now.table, .before = &before},
                             safety));
    SIEVE_TRY(kernel.replace_table(hook, now.table));
    return Removed{.point = hook.point, .left = now.table.sets.size()};
}

} // namespace sieve::control
