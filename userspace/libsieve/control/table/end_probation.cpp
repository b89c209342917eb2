// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/end_probation.hpp"

#include <utility>

#include <fmt/core.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve::control {

namespace {

tl::unexpected<Error> nothing_to_end(const HookName& name, bool taken_back) {
    const std::string where = name.interface.empty() ? "" : name.interface + ": ";
    return failure(ErrorKind::no,
                   taken_back ? where + "the last change was taken back already: it was not confirmed in time"
                              : where + "no change is on probation",
                   {.interface = name.interface});
}

} // namespace

tl::unexpected<Error> on_probation(const kernel::Hook& hook, std::chrono::nanoseconds left) {
    return failure(ErrorKind::unconfirmed,
                   fmt::format("{} {}: the last change is on probation, and is taken back in {} s unless it "
                               "is confirmed",
                               hook.interface.name, kernel::hook_point_name(hook.point),
                               std::chrono::ceil<std::chrono::seconds>(left).count()),
                   {.interface = hook.interface.name});
}

Status refuse_on_probation(Kernel& kernel, const kernel::Hook& hook) {
    if (!hook.speaks_our_version()) return {};
    const std::optional<std::chrono::nanoseconds> left = kernel.read_table(hook).probation;
    if (!left) return {};
    return on_probation(hook, *left);
}

Result<std::vector<kernel::Hook>> end_probation(Kernel& kernel, const HookName& name, ProbationEnd end,
                                                const Observer& observer) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(std::vector<kernel::Hook> hooks, hooks_of(kernel, name));
    std::vector<kernel::Hook> ended;
    bool taken_back = false;
    for (kernel::Hook& hook : hooks) {
        if (!hook.speaks_our_version()) continue;
        const kernel::TableInForce table = kernel.read_table(hook);
        taken_back = taken_back || table.taken_back;
        if (!table.probation) continue;
        const Status done = kernel.end_probation(hook, end == ProbationEnd::keep);
        if (!done && ended.empty()) return tl::unexpected(done.error());
        if (!done) return unfinished("some probations have ended, not all", done.error());
        // The table that is in force for good now may need less than the one that could have come.
        if (const Status left = kernel.end_replies(hook.interface); !left)
            return unfinished("the probation has ended, but what replies needed is still there",
                              left.error());
        ended.push_back(std::move(hook));
    }
    if (!ended.empty()) return ended;
    if (hooks.empty() && !name.interface.empty()) {
        SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name)); // the error says what is there
    }
    return nothing_to_end(name, taken_back);
}

} // namespace sieve::control
