// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Gives a set in force that lists its keys a larger table with more keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct Rebuilt {
    std::uint64_t keys = 0; // in the set now
    std::uint64_t late = 0; // by how many nanoseconds its keys may end later than is usual
};

// Reads the set's keys back, builds a table of them and of the keys to come, under new secrets and with room
// for a quarter more, tests it in the kernel and swaps it in. `life`: how many nanoseconds the keys to come
// live; nothing: for good. Those of them that are members already keep the later end. The building goes on
// without the lock; what others change meanwhile in the table in force goes to the new one as well before
// packets meet it. The set stays the same to everybody: its counters, its identity, and the number of its
// changes, which goes on. Errors: invalid_request if no table states their ends beside those of the others;
// changed_meanwhile if it was swapped or removed meanwhile, three times; those of prepare() and of swap().
[[nodiscard]] Result<Rebuilt> rebuild_with(Kernel& kernel, const HookName& hook, const std::string& set,
                                           const KeySet& coming, std::optional<std::uint64_t> life,
                                           const Observer& observer);

} // namespace sieve::control
