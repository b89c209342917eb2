// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/tc/attach.hpp"

#include <algorithm>
#include <cerrno>

#include <bpf/libbpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/hooks/tc/filters.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/refusal.hpp"
#include "libsieve/util/unfinished.hpp"

namespace sieve::kernel::tc {

namespace {

bpf_tc_attach_point libbpf_point(HookPoint point) {
    return point == HookPoint::ingress ? BPF_TC_INGRESS : BPF_TC_EGRESS;
}

bpf_tc_hook libbpf_hook(const Interface& interface, bpf_tc_attach_point point) {
    bpf_tc_hook hook{};
    hook.sz = sizeof(hook);
    hook.ifindex = static_cast<int>(interface.index);
    hook.attach_point = point;
    return hook;
}

// Returns 0 or a negative errno value.
int remove_filter(const Hook& hook, const TcFilter& filter) {
    const LogCapture log;
    const bpf_tc_hook at = libbpf_hook(hook.interface, libbpf_point(hook.point));
    LIBBPF_OPTS(bpf_tc_opts, options);
    options.handle = filter.handle;
    options.priority = filter.priority;
    return bpf_tc_detach(&at, &options);
}

bool contains(const std::vector<TcFilter>& filters, const TcFilter& filter) {
    return std::any_of(filters.begin(), filters.end(), [&](const TcFilter& one) {
        return one.program_id == filter.program_id && one.handle == filter.handle &&
               one.priority == filter.priority;
    });
}

// Removes the filter. Succeeds if the filter is gone, whatever the kernel answered.
Status remove_surely(const Hook& hook, const TcFilter& filter, const std::string& what) {
    const int error = remove_filter(hook, filter);
    if (error == 0) return {};
    const auto now = without_throwing([&] { return list_filters(hook.interface, hook.point); });
    if (!now) return outcome_unknown(what, now.error());
    return contains(*now, filter) ? Status(refusal(what, error)) : Status();
}

// Adds the program where `before` has none of ours, or replaces ours of another version. Returns 0 or a
// negative errno value.
int add_filter(const Hook& before, const BpfObject& object, std::uint32_t priority) {
    const LogCapture log;
    const auto both = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
    bpf_tc_hook clsact = libbpf_hook(before.interface, both);
    if (const int error = bpf_tc_hook_create(&clsact); error != 0 && error != -EEXIST) return error;
    const bpf_tc_hook at = libbpf_hook(before.interface, libbpf_point(before.point));
    LIBBPF_OPTS(bpf_tc_opts, filter);
    filter.prog_fd = object.program_fd();
    filter.handle = our_handle;
    filter.priority = priority;
    if (const TcFilter* present = before.filter(); present != nullptr) { // ours, of another version
        filter.handle = present->handle;
        filter.priority = present->priority;
        filter.flags = BPF_TC_F_REPLACE;
    }
    return bpf_tc_attach(&at, &filter);
}

std::string remedy(int error, std::uint32_t priority) {
    switch (-error) {
    case EEXIST:
        return fmt::format("priority {} has a filter of this handle already", priority);
    case EINVAL:
    case ENOENT:
        return fmt::format(
            "the kernel needs cls_bpf and clsact (sch_ingress), the latter instead of a queueing "
            "discipline `ingress`, and priority {} must not belong to filters of another kind",
            priority);
    case ENODEV:
        return "the interface is gone";
    default:
        return {};
    }
}

} // namespace

// The kernel's answer can get lost (no memory for it, a signal). So after an error, attach() and detach()
// trust only what they find at the hook.
Result<Attached> attach(const Hook& before, const BpfObject& object, const AttachOptions& options) {
    const std::string what =
        fmt::format("attaching to {}'s {} hook", before.interface.name, hook_point_name(before.point));
    SIEVE_ASSIGN(const std::uint32_t id, program_id(object.program_fd()));
    const int error = add_filter(before, object, options.rank.priority);
    // Our lock covers one network namespace only, and `tc` takes no lock. So read the hook again.
    Result<Hook> now = without_throwing([&] { return tc::read_hook(before.interface, before.point); });
    if (!now)
        return error == 0 ? unfinished(what + " worked, but reading the hook again did not", now.error())
                          : outcome_unknown(what, now.error());
    const auto mine = std::find_if(now->filters.begin(), now->filters.end(),
                                   [id](const TcFilter& filter) { return filter.program_id == id; });
    if (mine != now->filters.end() && now->ours && now->ours->id == id)
        return Attached{.hook = std::move(*now), .frags = false, .remarks = {}};
    if (error != 0) return refusal(what, error, remedy(error, options.rank.priority));
    if (mine != now->filters.end())
        if (const Status removed = remove_surely(before, *mine, what); !removed)
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
    return remove_surely(hook, *before, what);
}

} // namespace sieve::kernel::tc
