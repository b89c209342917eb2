// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/removal.hpp"

#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/service/safety/entry_safety.hpp"

namespace sieve::service::live {

Status refuse_removal(control::Kernel& kernel, const Configuration& configuration, const std::string& set,
                      const FindLeaving& leaving, HostAddresses& host) {
    SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, control::hooks_of(kernel, {}));
    std::optional<Members> members;
    std::vector<sieve_key> entries;
    for (const kernel::Hook& hook : hooks) {
        if (!hook.speaks_our_version()) continue;
        const kernel::TableInForce table = kernel.read_table(hook);
        const kernel::SetInForce* const found = table.find(set);
        if (found == nullptr) continue;
        // In most tables, what goes is what would have been dropped.
        if (found->action != SIEVE_ACTION_PASS && !kernel.read_returning(hook)) continue;
        if (!members) {
            SIEVE_ASSIGN(members, leaving());
            entries = entries_of(*members);
        }
        if (entries.empty()) return {};
        const InterfaceConfiguration* const entry = entry_for(configuration, hook.interface.name, hook.point);
        std::optional<EntrySafety> of_entry;
        control::Safety safety{.host = &host};
        if (entry != nullptr) safety = of_entry.emplace(configuration, *entry, safety).get();
        Status asked = control::refuse_lockout(kernel, hook,
                                               {.map_id = found->map_id,
                                                .fields = members->fields(),
                                                .entries = entries,
                                                .prefixes = true,
                                                .erased = true},
                                               safety);
        if (asked) continue;
        if (asked.error().kind == ErrorKind::lockout)
            asked.error().message = lockout_text(asked.error(), entry);
        return asked;
    }
    return {};
}

Result<std::optional<Refusal>> guard_removal(const RefuseRemoval& ask, const std::string& set,
                                             const FindLeaving& leaving) {
    if (!ask) return std::nullopt;
    Status asked = ask(leaving);
    if (asked) return std::nullopt;
    if (asked.error().kind != ErrorKind::lockout) return tl::unexpected(std::move(asked.error()));
    return Refusal{Guard::lockout, fmt::format("set {}: {}", set, asked.error().message)};
}

} // namespace sieve::service::live
