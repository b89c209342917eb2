// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A signed manifest on its way from a process that parses what etcd says to one that must not: as fields,
// whose canonical text the reader writes itself and checks the signature of.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

[[nodiscard]] std::string manifest_fields(const SignedManifest& manifest);

// The manifest, exactly as a pinned key signed it. Believes nothing before a signature was found right, and
// parses no text that it has not written. bad_input: the fields are none, no signature of a pinned key is
// right, or it was made for another fleet.
[[nodiscard]] Result<SignedManifest> open_manifest_fields(std::string_view fields, const std::string& fleet,
                                                          std::span<const PublicKey> pinned);

} // namespace sieve::fleet
