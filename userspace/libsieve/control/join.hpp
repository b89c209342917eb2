// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Finds the sets of a table that one lookup can answer for, and makes their joint filter (sieve/joint.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libsieve/control/kernel.hpp"
#include "libsieve/control/observer.hpp"
#include "libsieve/control/ready_set.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

// Why a joint filter cannot answer for a set; empty if it can.
[[nodiscard]] std::string cannot_be_joined(const ReadySet& set);

// A joint filter that is in the kernel and has answered correctly there, but is not in force.
struct Joined {
    JointFilter filter;
    SetMaps maps;                  // keeps the filter's map
    std::vector<std::string> sets; // in the order of their numbers

    [[nodiscard]] kernel::WantedJoint wanted() const { return {.map_fd = maps.filter_fd, .sets = sets}; }
};

// Joins those sets of the table, which are in its order, that have the same fields. If there are several such
// groups, it takes the largest, and the first of these. The filter's rate is as low as the lowest of the
// sets' own rates, but not below 1e-9. Nothing if fewer than two sets can be joined. The observer is told
// which sets are left out, and why. Errors: those of JointFilter::build() and Kernel::bring_in_joint().
[[nodiscard]] Result<std::optional<Joined>> join(Kernel& kernel, kernel::HookPoint point,
                                                 std::span<const ReadySet> sets, const Observer& observer);

} // namespace sieve::control
