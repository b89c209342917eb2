// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which probes a prefix set gets that changes while it is in force.
#pragma once

#include <cstdint>
#include <span>

#include <sieve/image.h>

#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/filters/prefixes/prefix_expansion.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// Probes for a set of these entries and fields. Each family gets a probe of whole keys (in a set of one
// address, of single addresses), so that every key can be inserted later, and the lengths that the limits
// name: of the address, while all else is given; if keys have two addresses, of either one. Entries that
// leave different fields open need different probes. Each further probe, up to limits.max_probes, more than
// halves the number of stored keys: a probe costs every packet, but stored keys take the room that later
// entries need. Errors as for plan_prefixes().
[[nodiscard]] Result<sieve_probes> choose_probes(std::span<const sieve_key> entries, std::uint32_t fields,
                                                 const PrefixLimits& limits);

} // namespace sieve
