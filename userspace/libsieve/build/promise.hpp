// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The last word on a finished filter: its rate is the one that was promised, or the filter is refused.
#pragma once

#include "libsieve/build/set_builder.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

// bad_input in one of three cases:
// - The measured rate contradicts the expected one by more than six sigma.
// - The expected rate is above one and a half times the predicted one by more than six standard deviations of
//   what chance does to such a filter (scatter_of_expected_fpr).
// - The expected rate is above eight times the predicted one, and above 1e-9. A builder that crowds keys into
// some
//   of the lines raises the scatter with the rate, so that the second rule alone would let its filters pass.
// The last two are for sets of 4096 keys and more. Smaller ones differ too much from each other.
[[nodiscard]] Status check_promise(const Image& image, const BuildReport& report);

} // namespace sieve
