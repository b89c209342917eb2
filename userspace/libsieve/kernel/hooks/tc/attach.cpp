// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/tc/attach.hpp"

#include <algorithm>
#include <cerrno>

#include <bpf/libbpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/hooks/tc/filters.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/refusal.hpp"

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

// 0 or a negative errno value.
int remove_filter(const Hook& hook, const TcFilter& filter) {
    const LogCapture log;
    const bpf_tc_hook at = libbpf_hook(hook.interface, libbpf_point(hook.point));
    LIBBPF_OPTS(bpf_tc_opts, options);
    options.handle = filter.handle;
    options.priority = filter.priority;
    return bpf_tc_detach(&at, &options);
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

Result<Attached> attach(const Hook& before, const BpfObject& object, const AttachOptions& options) {
    const std::string what =
        fmt::format("attaching to {}'s {} hook", before.interface.name, hook_point_name(before.point));
    const std::uint32_t priority = options.rank.priority;
    SIEVE_ASSIGN(const std::uint32_t id, program_id(object.program_fd()));
    {
        const LogCapture log;
        const auto both = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
        bpf_tc_hook clsact = libbpf_hook(before.interface, both);
        if (const int error = bpf_tc_hook_create(&clsact); error != 0 && error != -EEXIST)
            return refusal(what, error, remedy(error, priority));
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
        if (const int error = bpf_tc_attach(&at, &filter); error != 0)
            return refusal(what, error, remedy(error, priority));
    }
    // Another controller's lock is of its network namespace alone, and `tc` knows no lock: who is there now?
    SIEVE_ASSIGN(Hook now, tc::read_hook(before.interface, before.point));
    const auto mine = std::find_if(now.filters.begin(), now.filters.end(),
                                   [id](const TcFilter& filter) { return filter.program_id == id; });
    if (mine == now.filters.end() || !now.ours || now.ours->id != id) {
        if (mine != now.filters.end()) (void)remove_filter(before, *mine);
        return kernel_refused(fmt::format("{}: another program came in between; nothing was changed", what));
    }
    return Attached{.hook = std::move(now), .frags = false, .remarks = {}};
}

Status detach(const Hook& hook) {
    SIEVE_ASSIGN(const std::vector<TcFilter> filters, list_filters(hook.interface, hook.point));
    const TcFilter* before = hook.filter();
    const auto mine = std::find_if(filters.begin(), filters.end(), [&](const TcFilter& filter) {
        return before != nullptr && filter.program_id == before->program_id &&
               filter.handle == before->handle && filter.priority == before->priority;
    });
    if (mine == filters.end())
        return kernel_refused(fmt::format("detaching from {}'s {} hook: the filter is gone",
                                          hook.interface.name, hook_point_name(hook.point)));
    if (const int error = remove_filter(hook, *mine); error != 0)
        return refusal(
            fmt::format("detaching from {}'s {} hook", hook.interface.name, hook_point_name(hook.point)),
            error);
    return {};
}

} // namespace sieve::kernel::tc
