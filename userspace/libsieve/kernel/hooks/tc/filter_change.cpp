// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/tc/filter_change.hpp"

#include <algorithm>
#include <cerrno>

#include <bpf/libbpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/hooks/tc/filters.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/results/unfinished.hpp"

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

} // namespace

int add_filter(const Interface& interface, HookPoint point, const NewFilter& filter) {
    const LogCapture log;
    const auto both = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
    bpf_tc_hook clsact = libbpf_hook(interface, both);
    const int created = bpf_tc_hook_create(&clsact);
    if (created != 0 && created != -EEXIST) return created;
    if (created == -EEXIST && point == HookPoint::egress) {
        std::string discipline;
        if (const int error = read_discipline(interface, discipline); error != 0) return -error;
        if (discipline == only_ingress) return -EOPNOTSUPP;
    }
    const bpf_tc_hook at = libbpf_hook(interface, libbpf_point(point));
    LIBBPF_OPTS(bpf_tc_opts, options);
    options.prog_fd = filter.program_fd;
    options.handle = filter.handle;
    options.priority = filter.priority;
    if (filter.replace) options.flags = BPF_TC_F_REPLACE;
    return bpf_tc_attach(&at, &options);
}

std::string add_filter_remedy(int error, std::uint32_t priority) {
    switch (-error) {
    case EEXIST:
        return fmt::format("priority {} has a filter of this handle already", priority);
    case EINVAL:
    case ENOENT:
    case EOPNOTSUPP:
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

bool contains(const std::vector<TcFilter>& filters, const TcFilter& filter) {
    return std::any_of(filters.begin(), filters.end(), [&](const TcFilter& one) {
        return one.program_id == filter.program_id && one.handle == filter.handle &&
               one.priority == filter.priority;
    });
}

Status remove_filter(const Interface& interface, HookPoint point, const TcFilter& filter,
                     const std::string& what) {
    const int error = [&] {
        const LogCapture log;
        const bpf_tc_hook at = libbpf_hook(interface, libbpf_point(point));
        LIBBPF_OPTS(bpf_tc_opts, options);
        options.handle = filter.handle;
        options.priority = filter.priority;
        return bpf_tc_detach(&at, &options);
    }();
    if (error == 0) return {};
    const auto now = without_throwing([&] { return list_filters(interface, point); });
    if (!now) return outcome_unknown(what, now.error());
    return contains(*now, filter) ? Status(refusal(what, error)) : Status();
}

} // namespace sieve::kernel::tc
