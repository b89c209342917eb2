// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Checks a finished filter: if its rate is not the promised one, the filter is refused.
#pragma once

#include "libsieve/build/set_builder.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// The most volatile filter (blocked, one choice) of 4096 keys at 32 bits a key got 2.2 times the predicted
// rate in the worst of 20 builds.
inline constexpr double most_times_predicted = 8;
// A single unlucky line, such as one with an overfull bucket, may match so large a share of the hashes that
// are looked up in it. A rate that one of them explains proves nothing. With 56 bits a key, one counting
// filter of 4500 keys in about a thousand had ten times its predicted rate for this reason.
inline constexpr double unlucky_share = 1.0 / 256;

// Whether the expected rate of a filter is above most_times_predicted times the predicted one. Of one filter
// in some thousands chance makes a line that matches a large share of the hashes that are looked up in it;
// another seed gives another filter. So does a fault of a builder, whatever the seed. Applies to sets of 4096
// keys and more.
[[nodiscard]] bool is_unlucky(const BuildReport& report);

// Returns bad_input in three cases:
// - The measured rate contradicts the expected rate by more than six sigma.
// - The expected rate is above one and a half times the predicted rate, and the excess is more than six
//   standard deviations of the scatter of such a filter (scatter_of_expected_fpr).
// - The expected rate is above eight times the predicted rate, and above what one unlucky line explains. This
//   catches a builder that crowds keys into some of the lines: crowding raises the scatter together with the
//   rate, so the second rule alone would let such a filter pass.
// The last two cases apply to sets of 4096 keys and more. Smaller filters differ too much from each other.
[[nodiscard]] Status check_promise(const Image& image, const BuildReport& report);

} // namespace sieve
