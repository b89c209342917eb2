// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The source of a build's randomness: the kernel, or a seed that makes the build reproducible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// Fills `words`. Without a seed, the words come from getrandom(2) and nobody can guess them. With a seed,
// they are the first words of the 64-bit Mersenne twister with that seed: the same on every machine, and
// known to everybody who knows the seed. So seeds are only for tests and comparisons.
Status draw_secret(std::optional<std::uint64_t> seed, std::span<std::uint64_t> words);

} // namespace sieve
