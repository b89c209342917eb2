// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/joint/leave_joint.hpp"

#include <algorithm>
#include <utility>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::control {

Status leave_joint(Kernel& kernel, const kernel::Hook& hook, std::uint32_t map_id) {
    if (kernel.read_returning(hook)) return kernel.leave_joint_on_probation(hook, map_id);
    const kernel::TableInForce table = kernel.read_table(hook);
    const auto own = std::ranges::find(table.sets, map_id, &kernel::SetInForce::map_id);
    if (own == table.sets.end() || !own->joined) return {};
    SIEVE_ASSIGN(const UniqueFd map, kernel.open_map(table.joint_id));
    kernel::WantedJoint joint{.map_fd = map.get(), .sets = {}};
    for (const kernel::SetInForce& other : table.sets) {
        if (!other.joined || other.map_id == map_id) continue;
        joint.sets.resize(std::max<std::size_t>(joint.sets.size(), *other.joined + 1));
        joint.sets[*other.joined] = other.name;
    }
    kernel::WantedTable wanted = wanted_of(table);
    wanted.joint = std::move(joint);
    return kernel.replace_table(hook, wanted);
}

} // namespace sieve::control
