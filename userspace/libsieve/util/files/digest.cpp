// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/files/digest.hpp"

#define XXH_STATIC_LINKING_ONLY // makes the state a complete type, so that it can be a member
#include <xxhash.h>

#include <fmt/core.h>

namespace sieve {

struct Digest::State {
    XXH3_state_t hash{};
};

Digest::Digest() : state_(std::make_unique<State>()) {
    XXH3_128bits_reset(&state_->hash);
}

Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;
Digest::~Digest() = default;

void Digest::add(std::string_view bytes) {
    XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
}

std::string Digest::hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string digest_of(std::string_view text) {
    Digest digest;
    digest.add(text);
    return digest.hex();
}

} // namespace sieve
