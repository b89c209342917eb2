// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Builds the joint filter of a table in force anew, from the lists of its sets. The sets keep their filters,
// order, actions and counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/joint/join.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// What a set in force was built from.
struct SetList {
    std::string name{};
    KeySet keys;                               // without the exceptions
    std::vector<sieve_exception> exceptions{}; // that its filter promises not to match
};

// Reads a set's list from its feeds, as a build does. invalid_request: an image, or a list with prefixes or
// ranges.
[[nodiscard]] Result<SetList> read_set_list(const SetSpec& spec, const Observer& observer);

struct Rejoined {
    kernel::Hook hook;
    std::optional<Joined> joined{}; // nothing if there are not two sets that can be joined
    double milliseconds = 0;        // of the change itself, without building and testing
};

// Joins these sets; each must be in force. All others are asked by their own filters from now on. `build` has
// their lists, and is not called if there are not two sets that can be joined; the building goes on without
// the lock. The exceptions of the sets are those that their filters in force have.
//
// Errors: no_such_set; changed_meanwhile if a set gets another filter during the building; those of
// make_joint(); unconfirmed; lockout. After any error nothing was changed.
[[nodiscard]] Result<Rejoined> rejoin(Kernel& kernel, const HookName& name,
                                      const std::vector<std::string>& sets, const BuildJoint& build,
                                      const Observer& observer, const Safety& safety = {});

// The same with these lists, in this process. A list must be the one that the filter in force was built from,
// with the same exceptions, or it is refused as bad_input.
[[nodiscard]] Result<Rejoined> rejoin(Kernel& kernel, const HookName& name, const std::vector<SetList>& lists,
                                      const Observer& observer, const Safety& safety = {});

// How many of the sets of a table could share one lookup but do not: 0 if a new joint filter would be of no
// use. `has_list` says whether rejoin() would be given the set's list.
[[nodiscard]] Result<std::size_t> count_unjoined(Kernel& kernel, const kernel::TableInForce& table,
                                                 const std::function<bool(const std::string& set)>& has_list);

} // namespace sieve::control
