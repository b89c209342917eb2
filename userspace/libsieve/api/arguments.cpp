// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/api/arguments.hpp"

#include <fmt/core.h>

#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/control/table/replies.hpp"

namespace sieve::api {

Result<control::HookName> hook_name(const char* interface, const char* hook) {
    control::HookName name;
    if (interface != nullptr) {
        if (*interface == '\0') return invalid_request("the name of the interface is empty");
        name.interface = interface;
    }
    if (hook != nullptr) {
        name.point = kernel::parse_hook_point(hook);
        if (!name.point)
            return invalid_request(fmt::format("hook {}: expected xdp, ingress or egress", hook));
    }
    return name;
}

Result<sieve_action> parse_pass_or_drop(const char* what, const char* action) {
    const Result<control::WantedAction> wanted = control::parse_action(action);
    if (!wanted || (wanted->action != SIEVE_ACTION_PASS && wanted->action != SIEVE_ACTION_DROP))
        return invalid_request(fmt::format("{} `{}`: expected pass or drop", what, action));
    return wanted->action;
}

Result<control::WantedFlows> parse_flows(sieve_action replies, std::uint64_t max_flows) {
    if (max_flows == 0) return control::WantedFlows{};
    if (replies != SIEVE_ACTION_PASS || !control::is_flow_count(max_flows))
        return invalid_request(fmt::format("max_flows {}: expected 0, or with replies that pass {}",
                                           max_flows, control::flow_counts()));
    return control::WantedFlows{.most = max_flows};
}

Result<std::chrono::seconds> parse_probation(std::uint32_t seconds) {
    constexpr std::uint32_t longest = 86400;
    if (seconds > longest)
        return invalid_request(fmt::format("probation of {} seconds: expected at most {}", seconds, longest));
    return std::chrono::seconds(seconds);
}

} // namespace sieve::api
