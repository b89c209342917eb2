// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Inserts and erases single keys of a set in force, in place.
#pragma once

#include <cstdint>
#include <string>

#include "libsieve/build/key_changes.hpp"
#include "libsieve/control/in_force.hpp"
#include "libsieve/control/observer.hpp"
#include "libsieve/control/safety.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

struct ChangeableSet {
    kernel::HookPoint point = kernel::HookPoint::xdp; // the hook that has the set
    std::uint32_t fields = 0;                         // that the set's keys have
};

// Finds the set, for callers that must read keys before they can change them. Errors: not_attached,
// no_such_set; fixed_keys if the set's kind, or its verification, rules out changing single keys.
[[nodiscard]] Result<ChangeableSet> find_changeable(Kernel& kernel, const HookName& hook,
                                                    const std::string& set);

// Inserts or erases each key, which has the set's fields. The report names the keys that could not be
// changed. Errors as above; changed_meanwhile if the set has other fields now; lockout. The caller reads the
// keys before this function takes the lock: somebody may be typing them.
[[nodiscard]] Result<KeyChangeReport> change_keys(Kernel& kernel, const HookName& hook,
                                                  const std::string& set, const KeySet& keys,
                                                  KeyChange change, const Observer& observer,
                                                  const Safety& safety = {});

[[nodiscard]] inline Result<KeyChangeReport> insert(Kernel& kernel, const HookName& hook,
                                                    const std::string& set, const KeySet& keys,
                                                    const Observer& observer, const Safety& safety = {}) {
    return change_keys(kernel, hook, set, keys, KeyChange::insert, observer, safety);
}

[[nodiscard]] inline Result<KeyChangeReport> erase(Kernel& kernel, const HookName& hook,
                                                   const std::string& set, const KeySet& keys,
                                                   const Observer& observer, const Safety& safety = {}) {
    return change_keys(kernel, hook, set, keys, KeyChange::erase, observer, safety);
}

} // namespace sieve::control
