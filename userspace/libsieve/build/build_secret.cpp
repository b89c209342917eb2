// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/build_secret.hpp"

#include <cstring>

#include "libsieve/util/random/secret.hpp"

namespace sieve {

Result<BuildSecret> draw_build_secret(std::optional<std::uint64_t> seed) {
    std::array<std::uint64_t, sizeof(BuildSecret) / sizeof(std::uint64_t)> words{};
    SIEVE_TRY(draw_secret(seed, words));
    BuildSecret secret{};
    static_assert(sizeof(words) == sizeof(secret));
    std::memcpy(&secret, words.data(), sizeof(secret));
    return secret;
}

} // namespace sieve
