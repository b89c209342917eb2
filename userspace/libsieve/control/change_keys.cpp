// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/change_keys.hpp"

#include <memory>

#include <fmt/core.h>

#include "libsieve/control/hold_lock.hpp"
#include "libsieve/control/lockout.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::control {

namespace {

struct OpenSet {
    kernel::HookPoint point = kernel::HookPoint::xdp;
    std::unique_ptr<RunningFilter> filter;
    kernel::TableInForce table; // that has the set
};

// Opens the set's filter if its keys can be changed one by one.
Result<OpenSet> open_changeable(Kernel& kernel, const HookName& name, const std::string& set) {
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(const TableWithSet now, table_with(kernel, hook, set));
    SIEVE_ASSIGN(std::unique_ptr<RunningFilter> filter, kernel.open_filter(now.set.map_id));
    if (!kind_of(filter->lookup()).facts().changes_live)
        return failure(ErrorKind::fixed_keys,
                       fmt::format("set {} is of kind {}, whose keys cannot be changed one by one", set,
                                   kind_name(filter->lookup().kind)),
                       {.interface = name.interface, .set = set});
    if (now.verified())
        return bad_input(fmt::format("set {} is verified, and its exact keys cannot be changed one by one: "
                                     "change its feed and swap, or load it without verification",
                                     set));
    return OpenSet{.point = hook.point, .filter = std::move(filter), .table = kernel.read_table(hook)};
}

} // namespace

Result<ChangeableSet> find_changeable(Kernel& kernel, const HookName& hook, const std::string& set) {
    SIEVE_ASSIGN(const OpenSet open, open_changeable(kernel, hook, set));
    return ChangeableSet{.point = open.point, .fields = open.filter->lookup().fields};
}

Result<KeyChangeReport> change_keys(Kernel& kernel, const HookName& hook, const std::string& set,
                                    const KeySet& keys, KeyChange change, const Observer& observer,
                                    const Safety& safety) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const OpenSet open, open_changeable(kernel, hook, set));
    RunningFilter* filter = open.filter.get();
    if (filter->lookup().fields != keys.fields())
        return failure(
            ErrorKind::changed_meanwhile,
            fmt::format("set {} was meanwhile replaced by a set with other fields ({}); nothing was "
                        "changed",
                        set, format_fields(filter->lookup().fields)),
            {.interface = hook.interface, .set = set});
    SIEVE_TRY(refuse_lockout(
        kernel, hook.interface, open.point,
        ComingKeys{.table = open.table, .set = set, .keys = keys, .erased = change == KeyChange::erase},
        safety));
    return sieve::change_keys(filter->lookup(), filter->file(), filter->lines(), keys, change,
                              observer.progress);
}

} // namespace sieve::control
