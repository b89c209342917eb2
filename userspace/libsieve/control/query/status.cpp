// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/status.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/keys/exact_set.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/image.hpp"

namespace sieve::control {

namespace {

Result<std::vector<SetStatus>> read_sets(Kernel& kernel, const kernel::TableInForce& table) {
    std::vector<SetStatus> sets;
    for (const kernel::SetInForce& set : table.sets) {
        SetStatus status{.set = set, .filter = {}, .exact_bytes = 0};
        SIEVE_ASSIGN(status.filter, kernel.read_filter(set.map_id));
        if (set.exact_id != 0) {
            SIEVE_ASSIGN(status.exact_bytes, kernel.exact_bytes(set.exact_id));
        }
        if (set.inserted_id != 0) {
            SIEVE_ASSIGN(const std::unique_ptr<RunningKeys> inserted, kernel.open_inserted(set.inserted_id));
            SIEVE_ASSIGN(const std::vector<kernel::NotedKey> noted, inserted->all());
            const std::uint64_t now = kernel.boot_time();
            for (const kernel::NotedKey& one : noted) {
                status.ending += one.note.end != 0 ? 1 : 0;
                status.overdue += one.note.end != 0 && one.note.end <= now ? 1 : 0;
            }
        }
        if (lists_and_changes(status.filter.lookup)) {
            SIEVE_ASSIGN(const std::unique_ptr<RunningFilter> filter, kernel.open_filter(set.map_id));
            const EndingKeys keys = count_ending(*filter);
            status.ending = keys.ending + keys.ended;
            status.overdue = keys.ended;
            status.ends_by_itself = true;
        }
        sets.push_back(std::move(status));
    }
    return sets;
}

} // namespace

double SetStatus::bits_per_key() const {
    return static_cast<double>(kind_of(filter.lookup).lines(filter.lookup)) * SIEVE_LINE_BITS /
           static_cast<double>(std::max<std::uint64_t>(1, filter.file.keys));
}

double SetStatus::expected_rate() const {
    return rate_from_bits(filter.file.expected_fpr);
}

std::string SetStatus::identity() const {
    return fmt::format("{:016x}{:016x}", filter.file.identity[0], filter.file.identity[1]);
}

Result<TableStatus> read_table_status(Kernel& kernel, const kernel::Hook& hook) {
    constexpr int attempts = 3;
    Result<std::vector<SetStatus>> sets;
    for (int attempt = 0; attempt < attempts; attempt++) {
        const kernel::TableInForce table = kernel.read_table(hook);
        sets = read_sets(kernel, table);
        if (sets)
            return TableStatus{.default_action = table.default_action,
                               .replies = table.replies,
                               .unreadable = table.unreadable,
                               .sets = std::move(*sets),
                               .probation = table.probation,
                               .taken_back = table.taken_back,
                               .baseline = table.baseline,
                               .joint_id = table.joint_id};
    }
    return tl::unexpected(std::move(sets.error()));
}

Result<Overview> read_status(Kernel& kernel, const HookName& name) {
    SIEVE_ASSIGN(std::vector<kernel::Hook> hooks, read_hooks(kernel, name));
    Overview overview;
    for (kernel::Hook& hook : hooks) {
        if (hook.foreign())
            overview.foreign.push_back({.interface = hook.interface.name,
                                        .point = hook.point,
                                        .id = hook.attached->id,
                                        .name = hook.attached->name});
        if (!hook.ours) continue;
        HookStatus status;
        if (hook.speaks_our_version()) {
            SIEVE_ASSIGN(status.table, read_table_status(kernel, hook));
            SIEVE_ASSIGN(status.stats, kernel.read_stats(hook));
            status.watching = kernel.watching(hook);
            if (status.table.replies == SIEVE_ACTION_PASS) {
                SIEVE_ASSIGN(status.replies, kernel.read_replies(hook));
            }
        }
        status.hook = std::move(hook);
        overview.ours.push_back(std::move(status));
    }
    return overview;
}

} // namespace sieve::control
