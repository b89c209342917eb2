// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whether a node may follow a manifest: never one that is older than the one it has accepted, so that nobody
// can replay old envelopes. To go back, a publisher signs a new manifest with the old sets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libsieve/fleet/manifest.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::fleet {

// The last manifest that a node has accepted.
struct Accepted {
    std::uint64_t serial = 0;
    std::string digest{};
    std::string previous{};   // digest of the manifest that it replaces; empty: there is none
    bool may_go_back = false; // a failing rollout goes back to that one

    [[nodiscard]] friend bool operator==(const Accepted&, const Accepted&) = default;
};

// bad_input for a manifest that is older than the accepted one, or another one of the same serial.
[[nodiscard]] Status check_succession(const SignedManifest& published, const std::optional<Accepted>& before);

[[nodiscard]] Accepted accepted_as(const SignedManifest& published);

// Whether a node that has accepted a manifest may bring this one in: the accepted one, or the one before it
// where that was signed to follow a failure, or where the node has none in force yet. bad_input: not.
[[nodiscard]] Status check_turn(const SignedManifest& wanted, const std::optional<Accepted>& accepted,
                                bool has_none);

// The serial of a manifest that is made now (milliseconds since 1970) to replace one of serial `before`; 0:
// there is none.
[[nodiscard]] std::uint64_t next_serial(std::uint64_t now, std::uint64_t before);

} // namespace sieve::fleet
