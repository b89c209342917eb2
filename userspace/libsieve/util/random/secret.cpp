// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/random/secret.hpp"

#include <sys/random.h>

#include <cerrno>
#include <random>

#include <fmt/core.h>

namespace sieve {

Status draw_secret(std::optional<std::uint64_t> seed, std::span<std::uint64_t> words) {
    if (seed) {
        std::mt19937_64 stream(*seed);
        for (auto& word : words) word = stream();
        return {};
    }
    // getrandom() for up to 256 bytes is never interrupted and never short.
    if (words.size_bytes() > 256 ||
        ::getrandom(words.data(), words.size_bytes(), 0) != static_cast<ssize_t>(words.size_bytes()))
        return kernel_refused(fmt::format("getrandom: no secret seed to be had: {}", errno_text(errno)));
    return {};
}

} // namespace sieve
