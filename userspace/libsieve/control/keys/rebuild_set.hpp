// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Gives a set in force that lists its keys a larger table with more keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/access/open_table.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// A set when its keys were read.
struct SeenSet {
    HookName hook;
    std::string name;
    std::uint32_t map_id = 0;
    std::uint32_t exact_id = 0;
    sieve_lookup lookup{};
    sieve_file file{};
    KeySet keys;
    std::optional<Lifetimes> lifetimes; // of a table of ends
};

// Reads the set's keys back. The caller holds the lock.
[[nodiscard]] Result<SeenSet> see_set(const kernel::Hook& hook, const kernel::SetInForce& set,
                                      const OpenTable& open);

struct Rebuilt {
    std::uint64_t keys = 0; // in the set now
    std::uint64_t late = 0; // by how many nanoseconds its keys may end later than is usual
};

// Builds a table of the keys that were read and of those to come, under new secrets and with room for a
// quarter more, tests it in the kernel and swaps it in. `life`: how many nanoseconds the keys to come live;
// nothing: for good. Those of them that are members already keep the later end. The set stays the same to
// everybody: its counters, its identity, and the number of its changes, which goes on.
//
// `lock`: held since the keys were read, or nothing. Without it, others may change the set while the table is
// built: what they change in the table in force goes to the new one as well before packets meet it. If they
// replaced the table, or changed more of it than the new one has room for, the result is nothing, and the set
// stays as they left it. What protects this host is asked under the lock, since others may have given the set
// another action. Errors: invalid_request if no table states the ends beside those of the others; lockout;
// those of prepare() and of swap().
[[nodiscard]] Result<std::optional<Rebuilt>> rebuild_with(Kernel& kernel, const SeenSet& seen,
                                                          const KeySet& coming,
                                                          std::optional<std::uint64_t> life, Held lock,
                                                          const Observer& observer, const Safety& safety);

} // namespace sieve::control
