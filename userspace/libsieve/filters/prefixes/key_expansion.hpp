// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Controlled prefix expansion for keys of several fields: turns ranges of keys into stored keys of a few
// probes (sieve/prefix.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sieve/image.h>

#include "libsieve/filters/prefixes/prefix_expansion.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

struct KeyPlan {
    std::uint32_t fields = 0;
    sieve_probes probes{};
    std::vector<sieve_key> stored; // distinct, ascending
    std::uint64_t expanded = 0;    // stored keys before repetitions were dropped
};

// Chooses probes for each family: at most limits.max_probes, and no more than keep the filter cheap. Entries
// that leave different fields open need different probes. Among entries that leave the same fields open, the
// lengths of one address are chosen as for a set of one address. If both addresses have several lengths, the
// pairs of lengths are merged greedily. Errors: bad_input if more probes or more stored keys would be needed
// than the limits allow; the message gives the numbers.
[[nodiscard]] Result<KeyPlan> plan_keys(const KeySet& keys, const std::vector<KeyRange>& ranges,
                                        const PrefixLimits& limits);

// True if the key is in one of the plan's ranges.
[[nodiscard]] bool is_member(const KeyPlan& plan, const sieve_key& key);

// What a probe compares, for people: "dst/24 dport proto".
[[nodiscard]] std::string describe_probe(const sieve_probe& probe, int family);

// That entries make too many stored keys for these limits, with the forms of each family's entries.
[[nodiscard]] tl::unexpected<Error> too_many_stored(double keys, const PrefixLimits& limits,
                                                    const std::string& ipv4, const std::string& ipv6);

} // namespace sieve
