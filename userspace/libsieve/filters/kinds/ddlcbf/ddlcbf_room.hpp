// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Estimates whether keys fit a counting filter before it is built.
#pragma once

#include <cstdint>

#include "libsieve/filters/kinds/ddlcbf/ddlcbf_filter.hpp"

namespace sieve {

/// How many of `keys` keys are expected to find all their buckets full when they are inserted one after
/// another into `lines` lines. The d-left paper's differential equations (section II-A) give the share of
/// buckets that would have to hold more keys than they can. A result below one is close to the probability
/// that some key finds no room (1,000 to 100,000 keys, two to four subtables: within a factor of two).
double ddlcbf_keys_without_room(std::uint64_t keys, std::uint64_t lines, const DdlcbfShape& shape);

} // namespace sieve
