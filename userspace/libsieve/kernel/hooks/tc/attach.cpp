// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/tc/attach.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "libsieve/kernel/hooks/tc/filter_change.hpp"
#include "libsieve/kernel/hooks/tc/filters.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve::kernel::tc {

// The kernel's answer can get lost (no memory for it, a signal). So after an error, attach() and detach()
// trust only what they find at the hook.
Result<Attached> attach(const Hook& before, const BpfObject& object, const AttachOptions& options) {
    const std::string what =
        fmt::format("attaching to {}'s {} hook", before.interface.name, hook_point_name(before.point));
    SIEVE_ASSIGN(const std::uint32_t id, program_id(object.program_fd()));
    NewFilter filter{.program_fd = object.program_fd(),
                     .priority = options.rank.priority,
                     .handle = our_handle,
                     .replace = false};
    if (const TcFilter* present = before.filter(); present != nullptr) { // ours, of another version
        filter.handle = present->handle;
        filter.priority = present->priority;
        filter.replace = true;
    }
    const int error = add_filter(before.interface, before.point, filter);
    // Our lock covers one network namespace only, and `tc` takes no lock. So read the hook again.
    Result<Hook> now = without_throwing([&] { return tc::read_hook(before.interface, before.point); });
    if (!now)
        return error == 0 ? unfinished(what + " worked, but reading the hook again did not", now.error())
                          : outcome_unknown(what, now.error());
    const auto mine = std::find_if(now->filters.begin(), now->filters.end(),
                                   [id](const TcFilter& filter) { return filter.program_id == id; });
    if (mine != now->filters.end() && now->ours && now->ours->id == id)
        return Attached{.hook = std::move(*now), .frags = false, .remarks = {}};
    if (error != 0) return refusal(what, error, add_filter_remedy(error, options.rank.priority));
    if (mine != now->filters.end())
        if (const Status removed = remove_filter(before.interface, before.point, *mine, what); !removed)
            return unfinished(what +
                                  ": another program of ours was added meanwhile, and both are attached now",
                              removed.error());
    return kernel_refused(fmt::format("{}: another program came in between; nothing was changed", what));
}

Status detach(const Hook& hook) {
    const std::string what =
        fmt::format("detaching from {}'s {} hook", hook.interface.name, hook_point_name(hook.point));
    SIEVE_ASSIGN(const std::vector<TcFilter> filters, list_filters(hook.interface, hook.point));
    const TcFilter* before = hook.filter();
    if (before == nullptr || !contains(filters, *before))
        return kernel_refused(what + ": the filter is gone");
    return remove_filter(hook.interface, hook.point, *before, what);
}

} // namespace sieve::kernel::tc
