// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/swap.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/safety/allowlist.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/control/safety/undone_changes.hpp"
#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/control/table/hit_marks.hpp"
#include "libsieve/control/table/prepare.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::control {

Result<Swapped> swap(Kernel& kernel, const HookName& name, SetSpec spec, const Observer& observer,
                     const Safety& safety) {
    if (spec.action || spec.keeps_replies_out || spec.condition.fields != 0)
        return invalid_request(
            fmt::format("set {}: a swap changes the filter only, neither the action nor what it "
                        "is for, nor the order",
                        spec.name));
    SIEVE_TRY(check_names({&spec, 1}));
    HookName at = name;
    bool was_verified = false;
    std::optional<std::uint32_t> fields; // that packets were asked for
    {
        SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, spec.name));
        at.point = hook.point;
        SIEVE_TRY(refuse_on_probation(kernel, hook));
        SIEVE_ASSIGN(const TableWithSet now, table_with(kernel, hook, spec.name));
        was_verified = now.verified();
        const Result<kernel::FilterHeader> filter = kernel.read_filter(now.set.map_id);
        if (filter) fields = filter->lookup.fields;
        // A feed is read for the same key, unless another was chosen.
        if (fields && std::ranges::find(spec.feed.chosen, "key") == spec.feed.chosen.end())
            spec.feed.fields = *fields;
        // All that a set of an exact kind matches is a member, without verification.
        if (spec.verify && !was_verified) {
            if (!filter) return tl::unexpected(filter.error());
            if (kind_of(filter->lookup).exact() == nullptr)
                return invalid_request(fmt::format(
                    "set {} is not verified; load the table again with `verify` to change that", spec.name));
        }
        if (was_verified && !spec.verify) spec.verify = Verification{};
    }
    SIEVE_ASSIGN(PreparedSets prepared, prepare(kernel, *at.point, false, {&spec, 1}, observer, [&] {
                     return lockout_questions(safety, name.interface, *at.point);
                 }));
    ReadySet& set = prepared.sets.front();

    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, at));
    SIEVE_ASSIGN(TableWithSet now, table_with(kernel, hook, spec.name));
    if (now.verified() != was_verified)
        return failure(
            ErrorKind::changed_meanwhile,
            fmt::format("set {} was reloaded while its new filter was being built; swap it again", spec.name),
            {.interface = name.interface, .set = spec.name});
    now.table.sets[now.index].map_fd = set.maps.filter_fd;
    now.table.sets[now.index].exact_fd = set.maps.exact_fd;
    now.table.probation = safety.confirm_within;
    const kernel::TableInForce before = kernel.read_table(hook);
    SIEVE_TRY(refuse_lockout(kernel, *prepared.trial, hook.interface.name, hook.point,
                             {.table = now.table, .fresh = {&set, 1}, .specs = {&spec, 1}, .before = &before},
                             safety));
    std::vector<Warning> warnings = allowlist_warnings({&set, 1}, now.table);
    for (Warning& warning : undone_changes(kernel, before, now.table)) warnings.push_back(std::move(warning));
    const auto begin = std::chrono::steady_clock::now();
    SIEVE_TRY(
        replace_keeping_hits(kernel, hook, {&set, 1}, [&] { return kernel.replace_table(hook, now.table); }));
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
    if (const std::uint32_t now_asked = set.image.lookup().fields; fields && now_asked != *fields)
        observer.remark(fmt::format("set {}: packets are asked for {} now, and were for {}", spec.name,
                                    format_fields(now_asked), format_fields(*fields)));
    return Swapped{.point = hook.point,
                   .set = std::move(set),
                   .milliseconds = taken.count(),
                   .warnings = std::move(warnings)};
}

} // namespace sieve::control
