// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is attached at hooks, and the tables in force there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "libsieve/control/access/interfaces.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/kernel/programs/hook_point.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// The right to change what runs in this network namespace. The last owner's release gives it back.
using Held = std::shared_ptr<const void>;

// And the interfaces that have them.
class Hooks : public virtual Interfaces {
  public:
    // Waits up to `patience` for another controller. `waiting` is told once who that controller is. Then
    // tidies up behind a controller that died.
    [[nodiscard]] virtual Result<Held>
    hold_lock(std::chrono::milliseconds patience,
              const std::function<void(const std::string& holder)>& waiting) = 0;

    [[nodiscard]] virtual Result<kernel::Hook> read_hook(const kernel::Interface& interface,
                                                         kernel::HookPoint point) = 0;
    // Whether a program of that id is loaded, wherever it is attached.
    [[nodiscard]] virtual Result<bool> has_program(std::uint32_t id) = 0;
    // The hook must speak our version.
    [[nodiscard]] virtual kernel::TableInForce read_table(const kernel::Hook& hook) = 0;
    // While a change is on probation: the table that comes back unless it is confirmed. Its time may be over
    // at the next moment, so a caller that needs both tables reads this one first. Nothing otherwise.
    [[nodiscard]] virtual std::optional<kernel::TableInForce> read_returning(const kernel::Hook& hook) = 0;
    // These calls change what packets meet. After an error of kind unfinished, the change was made all the
    // same. After any other error, it was not.
    [[nodiscard]] virtual Status replace_table(const kernel::Hook& hook,
                                               const kernel::WantedTable& table) = 0;
    // Takes the set with this filter out of the joint filters of the table in force and of the one that may
    // come back. For a hook with a change on probation. See kernel::SetTable::leave_joint().
    [[nodiscard]] virtual Status leave_joint_on_probation(const kernel::Hook& hook, std::uint32_t map_id) = 0;
    // Keeps the change that is on probation there, or takes it back. See kernel::SetTable.
    [[nodiscard]] virtual Status end_probation(const kernel::Hook& hook, bool keep) = 0;
    [[nodiscard]] virtual Status detach(const kernel::Hook& hook) = 0;
};

} // namespace sieve::control
