// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where a build's randomness comes from: the kernel, or a seed that a person gave to have the same build
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "libsieve/util/result.hpp"

namespace sieve {

// Fills `words`. Without a seed they come from getrandom(2) and nobody can guess them; with one they are the
// first words of the 64-bit Mersenne twister for it: the same everywhere, and known to whoever knows the
// seed, so for tests and comparisons only.
Status draw_secret(std::optional<std::uint64_t> seed, std::span<std::uint64_t> words);

} // namespace sieve
