// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/programs/replay.hpp"

#include <algorithm>

namespace sieve::kernel {

Result<Replay> Replay::start(const WantedTable& table, HookPoint point) {
    SIEVE_ASSIGN(Scratch scratch, Scratch::load(true, point));
    SIEVE_TRY(scratch.table().replace(table));
    TableInForce live = scratch.table().read();
    return Replay(std::move(scratch), std::move(live));
}

Result<Replayed> Replay::run(std::span<const std::uint8_t> frame) const {
    Replayed result;
    const auto run = frame.first(std::min(frame.size(), longest_run));
    if (!scratch_.can_run(run)) {
        result.trace.outcome = SIEVE_OUTCOME_TRUNCATED;
        result.trace.verdict = result.verdict =
            table_.unreadable == SIEVE_ACTION_DROP ? SIEVE_VERDICT_DROP : SIEVE_VERDICT_PASS;
        result.trace.decision = SIEVE_NOT_ASKED;
        return result;
    }
    SIEVE_ASSIGN(result.verdict, scratch_.run(run));
    result.trace = scratch_.trace();
    for (const SetInForce& set : table_.sets)
        if (set.slot == result.trace.decision) result.decided_by = &set;
    return result;
}

} // namespace sieve::kernel
