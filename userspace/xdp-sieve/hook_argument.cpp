// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/hook_argument.hpp"

#include <fmt/core.h>

namespace sieve::cli {

void add_hook(Arguments verb, HookArgument& argument) {
    verb.add("IFACE", argument.interface, "the interface").required();
    add_hook_point(verb, argument.point);
}

void add_hook_point(Arguments verb, std::optional<std::string>& point) {
    verb.add(
            "--hook", point,
            "xdp (arriving packets, before the stack), ingress (arriving, at tc) or egress (leaving, at tc); "
            "if not given, the only hook of the interface that has the program")
        .called("HOOK");
}

Result<std::optional<kernel::HookPoint>> parse_hook(const std::optional<std::string>& text) {
    if (!text) return std::optional<kernel::HookPoint>();
    const std::optional<kernel::HookPoint> point = kernel::parse_hook_point(*text);
    if (!point) return usage_error(fmt::format("--hook {}: expected xdp, ingress or egress", *text));
    return point;
}

Result<control::HookName> find_hook(control::Kernel& kernel, const HookArgument& argument,
                                    const std::string& set) {
    SIEVE_ASSIGN(const std::optional<kernel::HookPoint> point, parse_hook(argument.point));
    return control::choose_hook(kernel, argument.interface, point, set);
}

std::string hook_text(const control::HookName& hook) {
    return hook.point == kernel::HookPoint::xdp ? hook.interface : fmt::format("{} {}", hook.interface, kernel::hook_point_name(hook.point));
}

void add_hook_name(nlohmann::json& out, const control::HookName& hook) {
    out["interface"] = hook.interface;
    out["hook"] = kernel::hook_point_name(hook.point);
}

} // namespace sieve::cli
