// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Checks a joint filter that another process has built, and that may mean harm.
#pragma once

#include <span>

#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// Whether it is the filter of these sets: of as many, with the same fields and the same number of distinct
// keys, and names the first set that holds it for each key. bad_input says what differs. Cost: hashing and
// sorting all keys, and a lookup for each. Defined beside the builder (joint_filter.cpp), whose steps it
// repeats.
[[nodiscard]] Status check_joint_names(const JointFilter& filter, std::span<const KeySet* const> sets);

} // namespace sieve
