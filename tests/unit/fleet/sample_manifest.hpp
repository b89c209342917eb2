// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A manifest with every field, and keys.
#pragma once

#include <utility>

#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/fleet/manifest/signing_key.hpp"
#include "libsieve/fleet/servers/sha256.hpp"

namespace sieve::fleet {

inline SigningKey new_key() {
    Result<SigningKey> key = SigningKey::generate();
    return std::move(*key);
}

inline PublicKey public_of(const SigningKey& key) {
    return std::move(*PublicKey::from_pem(*key.public_pem(), "test"));
}

inline Manifest some_manifest() {
    Manifest manifest;
    manifest.fleet = "edge";
    manifest.serial = 1'700'000'000'000;
    manifest.published_at = 1'700'000'000;
    manifest.valid_until = manifest.published_at + standard_validity;
    manifest.previous = sha256_of("before");
    manifest.sets = {{.name = "bad",
                      .as = BlobKind::image,
                      .digest = sha256_of("blob"),
                      .bytes = 4096,
                      .entries = 1000,
                      .rate = 1.25e-5,
                      .identity = "0123456789abcdef0123456789abcdef",
                      .action = "drop"},
                     {.name = "worse", .as = BlobKind::feed, .digest = sha256_of("feed"), .bytes = 17}};
    manifest.rollout.stages = {{.label = "canary"}, {.permille = 100}, {}};
    return manifest;
}

} // namespace sieve::fleet
