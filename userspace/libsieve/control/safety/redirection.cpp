// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/redirection.hpp"

#include <set>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace sieve::control {

namespace {

using kernel::Device;
using kernel::HookPoint;
using kernel::Mode;

// A larger MTU brings frames in several buffers, so the program for multi-buffer frames is attached.
constexpr int one_buffer_mtu = 1500;

std::set<std::string> targets_of(std::span<const SetSpec> sets) {
    std::set<std::string> targets;
    for (const SetSpec& set : sets)
        if (set.action && set.action->action >= SIEVE_ACTION_FIRST_REDIRECT)
            targets.insert(set.action->target);
    return targets;
}

bool in_driver(const RedirectSource& source) {
    return source.point == HookPoint::xdp && source.mode != Mode::skb;
}

const char* beginning(sieve_link link) {
    return link == SIEVE_LINK_ETHERNET ? "an Ethernet header" : "an IP header";
}

// At tc, the kernel removes an Ethernet header where the target has none. It cannot add one.
bool fits(HookPoint point, sieve_link from, sieve_link to) {
    return from == to || (point != HookPoint::xdp && from == SIEVE_LINK_ETHERNET);
}

Status check_device(const RedirectSource& source, const Device& from, const std::string& name,
                    const Device& to) {
    if (!to.up)
        return kernel_refused(fmt::format("redirect={}: {} is down, and the kernel drops what is redirected "
                                          "there; expected an interface that is up",
                                          name, name));
    if (from.link && to.link && !fits(source.point, *from.link, *to.link))
        return kernel_refused(fmt::format("redirect={}: {}'s packets begin with {}, {}'s with {}; expected "
                                          "an interface with the same link header",
                                          name, source.interface.name, beginning(*from.link), name,
                                          beginning(*to.link)));
    if (in_driver(source) && to.xdp && !to.xdp->sends)
        return failure(ErrorKind::no_native_mode,
                       fmt::format("redirect={}: {} does not send what native XDP redirects, and the kernel "
                                   "drops it; expected a driver that can (a veth can while its other end has "
                                   "an XDP program or GRO)",
                                   name, name),
                       {.interface = name});
    return {};
}

std::vector<Warning> device_warnings(const RedirectSource& source, const Device& from,
                                     const std::string& name, const Device& to) {
    std::vector<Warning> warnings;
    const auto warn = [&](WarningKind kind, std::string text) {
        warnings.push_back({kind, fmt::format("redirect={}: {}", name, text), {.interface = name}});
    };
    if (!to.carrier)
        warn(WarningKind::no_carrier,
             "the interface has no carrier; redirected packets are lost until it has one");
    if (source.point != HookPoint::xdp) return warnings;
    if (from.mtu > to.mtu)
        warn(WarningKind::smaller_mtu,
             fmt::format("its MTU is {} and that of {} is {}; the kernel drops longer packets", to.mtu,
                         source.interface.name, from.mtu));
    if (!in_driver(source)) return warnings;
    if (!to.xdp)
        warn(WarningKind::sending_unknown, "this kernel (before Linux 6.3) does not tell whether the driver "
                                           "sends what native XDP redirects");
    else if (from.mtu > one_buffer_mtu && !to.xdp->sends_long)
        warn(WarningKind::one_buffer, "the driver sends no frames of more than one buffer; they are dropped");
    return warnings;
}

} // namespace

bool redirects(std::span<const SetSpec> sets) {
    return !targets_of(sets).empty();
}

Result<Mode> expected_mode(Interfaces& kernel, const kernel::Hook& hook, kernel::ModeChoice choice) {
    if (hook.speaks_our_version()) return hook.mode;
    switch (choice) {
    case kernel::ModeChoice::native:
        return Mode::native;
    case kernel::ModeChoice::skb:
        return Mode::skb;
    case kernel::ModeChoice::automatic:
        break;
    }
    SIEVE_ASSIGN(const Device device, kernel.read_device(hook.interface));
    return device.xdp && !device.xdp->native ? Mode::skb : Mode::native;
}

Status check_targets(Interfaces& kernel, const RedirectSource& source, std::span<const SetSpec> sets) {
    for (const std::string& name : targets_of(sets)) {
        SIEVE_ASSIGN(const kernel::Target target, kernel.find_target(name));
        if (target.action != SIEVE_ACTION_REDIRECT_DEVICE) continue;
        if (target.number == source.interface.index)
            return invalid_request(fmt::format("redirect={}: packets would leave through the interface they "
                                               "arrived on, still addressed to this "
                                               "host; expected another interface",
                                               name));
        SIEVE_ASSIGN(const Device from, kernel.read_device(source.interface));
        SIEVE_ASSIGN(const Device to, kernel.read_device({name, target.number}));
        SIEVE_TRY(check_device(source, from, name, to));
    }
    return {};
}

std::vector<Warning> target_warnings(Interfaces& kernel, const RedirectSource& source,
                                     std::span<const SetSpec> sets) {
    std::vector<Warning> warnings;
    const std::set<std::string> targets = targets_of(sets);
    if (targets.empty()) return warnings;
    // An interface that has gone since the table went live needs no warning: `status` shows it.
    const Result<Device> from = kernel.read_device(source.interface);
    if (!from) return warnings;
    if (in_driver(source) && from->unfinished_checksums)
        warnings.push_back(
            {WarningKind::unfinished_checksums,
             fmt::format(
                 "packets that the other end of {} sends may have unfinished checksums, and native XDP "
                 "drops that information when it redirects them: their receiver drops them",
                 source.interface.name),
             {.interface = source.interface.name}});
    for (const std::string& name : targets) {
        const Result<kernel::Target> target = kernel.find_target(name);
        // For such packets tun.c calls the generic hook's code without setting mac_len, and the CPU map
        // removes an Ethernet header of mac_len bytes (cpu_map_generic_redirect()).
        if (target && target->action == SIEVE_ACTION_REDIRECT_CPU && in_driver(source) && from->tap)
            warnings.push_back(
                {WarningKind::tap_to_cpu,
                 fmt::format(
                     "redirect={}: {} is a tap, and in native mode Linux drops its packets on the other CPU "
                     "if they were written by a blocking write, are longer than a page, or await "
                     "segmentation",
                     name, source.interface.name),
                 {.interface = source.interface.name}});
        if (!target || target->action != SIEVE_ACTION_REDIRECT_DEVICE) continue;
        if (const Result<Device> to = kernel.read_device({name, target->number}); to)
            for (Warning& warning : device_warnings(source, *from, name, *to))
                warnings.push_back(std::move(warning));
    }
    return warnings;
}

} // namespace sieve::control
