// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/reset_counters.hpp"

#include <algorithm>
#include <iterator>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve::control {

namespace {

// The counters as they stood at the reset: the baselines of the table that is in force since then.
kernel::Stats stats_at_reset(const kernel::TableInForce& table) {
    kernel::Stats stats;
    const sieve_totals& totals = table.baseline;
    stats.dropped = totals.dropped;
    stats.passed = totals.passed;
    stats.redirected = totals.redirected;
    std::copy_n(std::begin(totals.outcome), stats.outcome.size(), stats.outcome.begin());
    stats.redirect_failed = totals.redirect_failed;
    stats.decided = totals.decided;
    stats.asked_unreadable = totals.asked_unreadable;
    for (const kernel::SetInForce& set : table.sets) {
        stats.hit[set.slot] = set.baseline;
        stats.verified[set.slot] = set.verified_baseline;
    }
    return stats;
}

} // namespace

Result<Sample> reset_counters(Kernel& kernel, const HookName& name, const Observer& observer) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name));
    Sample sample;
    sample.interface = hook.interface.name;
    sample.point = hook.point;
    sample.program_id = hook.ours->id;
    SIEVE_ASSIGN(sample.table, read_table_status(kernel, hook));
    kernel::WantedTable table = wanted_of(kernel.read_table(hook));
    table.reset_counters = true;
    SIEVE_TRY(kernel.replace_table(hook, table));
    sample.at = std::chrono::steady_clock::now();
    sample.stats = stats_at_reset(kernel.read_table(hook));
    return sample;
}

} // namespace sieve::control
