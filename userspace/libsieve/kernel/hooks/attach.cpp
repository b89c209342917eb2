// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/attach.hpp"

#include <fmt/core.h>

#include "libsieve/kernel/hooks/tc/attach.hpp"
#include "libsieve/kernel/hooks/tc/filters.hpp"
#include "libsieve/kernel/hooks/xdp/attach.hpp"
#include "libsieve/kernel/hooks/xdp/attached_program.hpp"
#include "libsieve/kernel/host/network_namespace.hpp"

namespace sieve::kernel {

Result<Hook> read_hook(const Interface& interface, HookPoint point) {
    return point == HookPoint::xdp ? xdp::read_hook(interface) : tc::read_hook(interface, point);
}

Result<Hook> find_ours(const std::string& name, HookPoint point) {
    SIEVE_ASSIGN(const Interface interface, find_interface(name));
    SIEVE_ASSIGN(Hook hook, read_hook(interface, point));
    SIEVE_TRY(refuse_unless_ours(hook));
    return hook;
}

Status may_attach(const Hook& hook, bool force) {
    if (!force && hook.foreign() && hook.attached->name != dispatcher_name)
        return foreign_program(hook, "another XDP program, " + program_text(*hook.attached));
    return {};
}

Result<Attached> attach(const Hook& before, const BpfObject& object, const AttachOptions& options) {
    // Set these before the first packet arrives, and before libxdp pins the program.
    SIEVE_ASSIGN(const sieve_link link, interface_link(before.interface));
    SIEVE_ASSIGN(const std::uint64_t network, network_namespace());
    object.instance().control().link = link;
    object.instance().control().network = network;
    return before.point == HookPoint::xdp ? xdp::attach(before, object, options)
                                          : tc::attach(before, object, options);
}

Status detach(const Hook& hook) {
    return hook.point == HookPoint::xdp ? xdp::detach(hook) : tc::detach(hook);
}

} // namespace sieve::kernel
