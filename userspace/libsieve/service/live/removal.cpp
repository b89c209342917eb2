// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/removal.hpp"

#include <optional>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/safety/entry_safety.hpp"

namespace sieve::service::live {

Status refuse_removal(control::Kernel& kernel, const Configuration& configuration, const std::string& set,
                      const std::function<KeySet()>& leaving, HostAddresses& host) {
    SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, control::hooks_of(kernel, {}));
    std::optional<KeySet> keys;
    std::vector<sieve_key> entries;
    for (const kernel::Hook& hook : hooks) {
        if (!hook.speaks_our_version()) continue;
        const kernel::TableInForce table = kernel.read_table(hook);
        const kernel::SetInForce* const found = table.find(set);
        if (found == nullptr) continue;
        // In most tables, what goes is what would have been dropped.
        if (found->action != SIEVE_ACTION_PASS && !kernel.read_returning(hook)) continue;
        if (!keys) {
            keys = leaving();
            keys->for_each(0, keys->size(), [&](const sieve_key& key) { entries.push_back(key); });
        }
        if (entries.empty()) return {};
        const InterfaceConfiguration* const entry = entry_for(configuration, hook.interface.name, hook.point);
        std::optional<EntrySafety> of_entry;
        control::Safety safety{.host = &host};
        if (entry != nullptr) safety = of_entry.emplace(configuration, *entry, safety).get();
        Status asked = control::refuse_lockout(
            kernel, hook,
            {.map_id = found->map_id, .fields = keys->fields(), .entries = entries, .erased = true}, safety);
        if (asked) continue;
        if (asked.error().kind == ErrorKind::lockout)
            asked.error().message = lockout_text(asked.error(), entry);
        return asked;
    }
    return {};
}

} // namespace sieve::service::live
