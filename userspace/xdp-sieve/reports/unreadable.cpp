// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/reports/unreadable.hpp"

#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "front-end/console/format.hpp"
#include "libsieve/control/spec/set_action.hpp"

namespace sieve::cli {

std::string outcome_row(std::uint32_t outcome) {
    return fmt::format("{}: {}", outcome < SIEVE_OUTCOME_FIRST_UNREADABLE ? "parsed" : "unreadable",
                       kernel::outcome_name(outcome));
}

nlohmann::json unreadable_json(sieve_action action, const kernel::Stats& stats) {
    nlohmann::json reasons;
    for (std::uint32_t i = SIEVE_OUTCOME_FIRST_UNREADABLE; i < SIEVE_OUTCOMES; i++)
        reasons[kernel::outcome_name(i)] = stats.outcome[i];
    return {{"action", control::action_name(action)},
            {"packets", kernel::unreadable_packets(stats)},
            {"reasons", std::move(reasons)}};
}

std::string describe_unreadable(const kernel::Stats& stats) {
    std::vector<std::string> reasons;
    for (std::uint32_t i = SIEVE_OUTCOME_FIRST_UNREADABLE; i < SIEVE_OUTCOMES; i++)
        if (stats.outcome[i] > 0)
            reasons.push_back(fmt::format("{} {}", format_count(stats.outcome[i]), kernel::outcome_name(i)));
    if (reasons.empty()) return {};
    const std::uint64_t packets = kernel::unreadable_packets(stats);
    return fmt::format("{} {} unreadable: {}", format_counted(packets, "packet"),
                       packets == 1 ? "was" : "were", fmt::join(reasons, ", "));
}

} // namespace sieve::cli
