// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/replay.hpp"

#include <utility>

#include "libsieve/control/table/prepare.hpp"

namespace sieve::control {

Result<std::unique_ptr<Replayer>> start_replay(Kernel& kernel, const TableSpec& spec,
                                               std::vector<SetInputs> inputs, const Observer& observer) {
    SIEVE_TRY(check_names(spec.sets));
    SIEVE_ASSIGN(const std::vector<SetAction> actions, find_actions(kernel, spec.sets, spec.default_action));
    SIEVE_TRY(kernel.may_load_programs());
    SIEVE_ASSIGN(const std::vector<ReadySet> sets, bring_in(kernel, spec.sets, std::move(inputs), observer));
    return kernel.start_replay(spec.point, wanted_table(sets, actions, spec));
}

void ReplayTotals::add(const kernel::Replayed& packet, std::uint64_t length) {
    packets++;
    bytes += length;
    (packet.verdict == SIEVE_VERDICT_DROP       ? dropped
     : packet.verdict == SIEVE_VERDICT_REDIRECT ? redirected
                                                : passed)++;
    outcomes[packet.trace.outcome & (SIEVE_OUTCOME_SLOTS - 1)]++;
    for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) hits[slot] += packet.trace.hits >> slot & 1;
    if (packet.trace.decision == SIEVE_NO_SET) by_default++;
}

} // namespace sieve::control
