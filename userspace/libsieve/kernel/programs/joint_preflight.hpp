// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// No joint filter goes live before it has answered correctly in the kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/programs/hook_point.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// One of the sets of a joint filter, in the order of their numbers.
struct JoinedSet {
    std::string name;
    int filter_fd = -1;                       // its own filter's map
    std::span<const sieve_witness> members{}; // some of its keys, at least one
};

struct JointReport {
    std::uint64_t members = 0;     // members that were asked; each was named the right set
    std::uint64_t non_members = 0; // random keys that were asked
};

// Runs the real program, in a scratch instance, over a table of these sets with the joint filter. Each set's
// members must be decided by that set, or by an earlier one that the joint filter names in user
// space, where the builder has checked every key. Up to 4,096 members of all sets together are asked. Random
// keys must be decided as the joint filter says in user space, whose rate was measured when it was built. The
// error says which answers were wrong.
[[nodiscard]] Result<JointReport> preflight_joint(const JointFilter& joint, const FilterMap& map,
                                                  std::span<const JoinedSet> sets,
                                                  HookPoint point = HookPoint::xdp);

} // namespace sieve::kernel
