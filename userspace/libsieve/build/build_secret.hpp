// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// All randomness of a build, in the order in which it is drawn.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <sieve/hash.h>

#include "libsieve/util/results/result.hpp"

namespace sieve {

struct BuildSecret {
    std::array<__u64, SIEVE_HASH_KEY_WORDS> hash_key;
    std::array<std::uint64_t, 2> identity;
    std::uint64_t placement;
    std::uint64_t witnesses;
    std::uint64_t measurement;
};

// Draws a secret from the kernel's random numbers; or the secret that follows from the seed, for tests.
[[nodiscard]] Result<BuildSecret> draw_build_secret(std::optional<std::uint64_t> seed);

} // namespace sieve
