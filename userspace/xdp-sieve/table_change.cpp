// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/table_change.hpp"

#include <vector>

#include <fmt/format.h>

namespace sieve::cli {

Result<WantedChange> wanted_with(const kernel::Hook& hook, const std::string& name) {
    const kernel::LiveTable live = kernel::SetTable(*hook.instance).read();
    WantedChange change;
    change.table.default_action = live.default_action;
    std::vector<std::string> names;
    bool found = false;
    for (const kernel::LiveSet& set : live.sets) {
        if (set.name == name) {
            found = true;
            change.index = change.table.sets.size();
            change.verified = set.exact_id != 0;
        }
        names.push_back(set.name);
        change.table.sets.push_back(
            {.name = set.name, .action = set.action, .map_fd = -1, .target = set.target});
    }
    if (!found)
        return tl::unexpected(Error{
            Exit::no, names.empty() ? fmt::format("{} has no set {}, and no other", hook.interface.name, name)
                                    : fmt::format("{} has no set {}, but {}", hook.interface.name, name,
                                                  fmt::join(names, ", "))});
    return change;
}

} // namespace sieve::cli
