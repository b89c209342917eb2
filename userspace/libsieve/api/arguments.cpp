// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/api/arguments.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "libsieve/api/handles.hpp"
#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/control/table/replies.hpp"
#include "libsieve/kernel/host/interface.hpp"

namespace sieve::api {

namespace {

struct Member {
    std::string_view name;
    bool given;
};

} // namespace

Result<control::HookName> hook_name(const char* interface, const char* hook) {
    control::HookName name;
    if (interface != nullptr) {
        if (*interface == '\0') return invalid_request("the name of the interface is empty");
        // Of an alternative name, the one that everybody else compares.
        const Result<kernel::Interface> found = kernel::find_interface(interface);
        name.interface = found ? found->name : interface;
    }
    if (hook != nullptr) {
        name.point = kernel::parse_hook_point(hook);
        if (!name.point)
            return invalid_request(fmt::format("hook {}: expected xdp, ingress or egress", hook));
    }
    return name;
}

Result<libsieve_change_options> change_options(const char* function, const libsieve_change_options* given,
                                               std::initializer_list<const char*> taken) {
    SIEVE_ASSIGN(const libsieve_change_options options, at_full_size(given));
    for (const auto& [name, is_given] : {Member{"action", options.action != nullptr},
                                         {"before", options.before != nullptr},
                                         {"after", options.after != nullptr},
                                         {"first", options.first},
                                         {"last", options.last},
                                         {"keep_counters", options.keep_counters},
                                         {"force", options.force},
                                         {"allow_lockout", options.allow_lockout},
                                         {"probation", options.probation != 0}})
        if (is_given && std::ranges::find(taken, name) == taken.end())
            return invalid_request(fmt::format("{}: found the option `{}`, expected none but {}", function,
                                               name, fmt::join(taken, ", ")));
    return options;
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
