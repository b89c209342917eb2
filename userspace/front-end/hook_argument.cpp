// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/hook_argument.hpp"

#include <fmt/core.h>

#include "libsieve/kernel/host/interface.hpp"

namespace sieve::cli {

namespace {

std::string names_of_hooks() {
    std::string names;
    for (const kernel::HookPoint point : kernel::all_hook_points)
        names += fmt::format("{}{}", names.empty() ? "" : "|", kernel::hook_point_name(point));
    return names;
}

} // namespace

Argument add_interface(Arguments command, std::string& into, const std::string& description) {
    return command.add("IFACE", into, description).read_as([](std::string text) {
        const Result<kernel::Interface> found = kernel::find_interface(text);
        return found ? found->name : text;
    });
}

void add_hook(Arguments command, std::string& into, const std::string& otherwise) {
    command
        .add("--hook", into,
             "xdp (arriving, before the network stack), ingress (arriving, at tc) or egress (leaving, at "
             "tc); " +
                 otherwise)
        .called(names_of_hooks());
}

Result<control::HookName> parse_hook(const std::string& interface, const std::string& hook) {
    control::HookName name{.interface = interface, .point = kernel::parse_hook_point(hook)};
    if (!name.point && !hook.empty())
        return invalid_request(fmt::format("--hook {}: expected xdp, ingress or egress", hook));
    return name;
}

std::string hook_title(const std::string& interface, kernel::HookPoint point) {
    return point == kernel::HookPoint::xdp ? interface : fmt::format("{} {}", interface, kernel::hook_point_name(point));
}

} // namespace sieve::cli
