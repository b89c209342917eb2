// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Inserts and erases keys and prefixes of a set in force, in place.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "libsieve/build/key_changes.hpp"
#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct ChangeableSet {
    kernel::HookPoint point = kernel::HookPoint::xdp; // the hook that has the set
    std::uint32_t fields = 0;                         // that the set's keys have
    bool prefixes = false;                            // the set holds prefixes
    bool exact = false;                               // the set lists its keys; none matches by mistake
    bool verified = false;                            // its members are known, though a filter has them
    // The set has its filter by a change on probation, which is taken back after this time, and what happens
    // to the filter's keys meanwhile with it.
    std::optional<std::chrono::nanoseconds> taken_back_in{};
};

// Finds the set, for callers that must read keys before they can change them. Errors: not_attached,
// no_such_set; fixed_keys if the set's kind rules out changing keys one by one.
[[nodiscard]] Result<ChangeableSet> find_changeable(Kernel& kernel, const HookName& hook,
                                                    const std::string& set);

struct KeyRequest {
    KeyChange change = KeyChange::insert;
    // Of `insert`: the keys end so long after now. A key that ends already keeps the later end, a member for
    // good has none. Inserting for good removes an end.
    std::optional<std::chrono::nanoseconds> lifetime{};
    bool grow = false; // of `insert`, into a verified set: if keys do not fit, swap a larger filter in
};

struct KeysChanged {
    KeyChangeReport report{};    // of a prefix set, it names entries (filters/prefixes/prefix_entries.hpp)
    std::uint64_t other_end = 0; // of the keys done: they were in already, and only their end changed
    std::uint64_t expired = 0;   // keys of this hook's sets whose time was over, and which were taken out
    std::uint32_t grown = 0;     // how often the set grew, or was built anew for ends that it could not state
    bool only_for_ends = false;  // it would have had room for the keys
    std::chrono::nanoseconds late{0}; // by how much keys of the set may end, where tolerated_delay() is less
};

// Inserts or erases each key and each prefix, which have the set's fields. A range counts as the prefixes
// that make it up. The report names those that could not be changed. In a verified set, the exact set tells
// what is a member, and changes with the filter, so that the filter's false positives do not matter; a prefix
// is a member if it was listed or inserted, whatever is around it. Keys whose time is over are taken out
// before. Errors as above, and changed_meanwhile if the set has other fields now; invalid_request for a
// lifetime or growth that do not fit the rest; bad_input for a prefix if the set holds none, or if the set's
// probe lengths would turn the prefix into more than most_stored_keys; lockout. The caller reads the keys
// before this function takes the lock: somebody may be typing them.
[[nodiscard]] Result<KeysChanged> change_keys(Kernel& kernel, const HookName& hook, const std::string& set,
                                              const Members& members, const KeyRequest& request,
                                              const Observer& observer, const Safety& safety = {});

[[nodiscard]] inline Result<KeysChanged> change_keys(Kernel& kernel, const HookName& hook,
                                                     const std::string& set, const KeySet& keys,
                                                     const KeyRequest& request, const Observer& observer,
                                                     const Safety& safety = {}) {
    return change_keys(kernel, hook, set, Members(keys, {}), request, observer, safety);
}

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
