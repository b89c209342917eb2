// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/table_guard.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "libsieve/control/spec/set_action.hpp"

namespace sieve::control {

namespace {

template <class Sets>
bool some_set_lets_in(const Sets& sets) {
    return std::any_of(sets.begin(), sets.end(),
                       [](const auto& set) { return facts_of(set.action).lets_in; });
}

} // namespace

Status refuse_opening(const std::string& interface, const kernel::TableInForce& now,
                      const kernel::WantedTable& wanted) {
    if (now.default_action == SIEVE_ACTION_DROP && wanted.default_action == SIEVE_ACTION_PASS)
        return failure(ErrorKind::wants_force,
                       fmt::format("{}: the default in force is drop, and this table's default is pass: "
                                   "everybody would be let in",
                                   interface),
                       {.interface = interface});
    for (const kernel::WantedSet& set : wanted.sets) {
        const kernel::SetInForce* before = now.find(set.name);
        if (before == nullptr || before->action != SIEVE_ACTION_PASS || set.action != SIEVE_ACTION_DROP)
            continue;
        return failure(ErrorKind::wants_force,
                       fmt::format("{}: the matches of set {} pass at present, and in this table they are "
                                   "dropped",
                                   interface, set.name),
                       {.interface = interface, .set = set.name});
    }
    return {};
}

Status refuse_closing(const std::string& interface, const kernel::TableInForce& now,
                      const kernel::WantedTable& wanted) {
    const bool open = now.default_action == SIEVE_ACTION_PASS || some_set_lets_in(now.sets);
    if (!open || wanted.default_action != SIEVE_ACTION_DROP || some_set_lets_in(wanted.sets)) return {};
    return failure(
        ErrorKind::wants_force,
        fmt::format("{}: with a default of drop and no set whose matches pass, every packet with a "
                    "key would be dropped",
                    interface),
        {.interface = interface});
}

} // namespace sieve::control
