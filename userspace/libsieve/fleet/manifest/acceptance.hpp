// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whether a node may follow a manifest: never one that is older than the one it has accepted, so that nobody
// can replay old envelopes. To go back, a publisher signs a new manifest with the old sets.
//
// Serials count by key: one that only keys have signed which are not trusted any more does not count. So
// whoever stole a key cannot spend the serials of the keys that come after it.
//
// A node without a serial that counts, such as a new one, knows no older manifest. It follows one only within
// the times that the manifest was signed with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

// The last manifest that a node has accepted.
struct AcceptedManifest {
    std::uint64_t serial = 0;
    std::string digest{};
    std::string previous{};   // digest of the manifest that it replaces; empty: there is none
    bool may_go_back = false; // a failing rollout goes back to that one
    // The highest serial that was accepted of each key, by its ID. Empty in records of older versions.
    std::map<std::string, std::uint64_t> by_key{};
    std::string fleet{}; // its name; empty in records of older versions

    [[nodiscard]] friend bool operator==(const AcceptedManifest&, const AcceptedManifest&) = default;
};

// How far clocks may differ, in seconds.
inline constexpr std::uint64_t clock_tolerance = std::uint64_t{24} * 3600;

// bad_input for a manifest that is older than what was accepted of these keys, or another one of the same
// serial. `no`: nothing was accepted of them, and this one is not valid `now` (milliseconds since 1970).
[[nodiscard]] Status check_succession(const SignedManifest& published,
                                      const std::optional<AcceptedManifest>& before,
                                      std::span<const std::string> trusted, std::uint64_t now);

[[nodiscard]] AcceptedManifest accepted_as(const SignedManifest& published,
                                           const std::optional<AcceptedManifest>& before);

// Whether a node that has accepted a manifest may bring this one in: the accepted one, or the one before it
// where that was signed to follow a failure, or where the node has none in force yet. bad_input: not.
[[nodiscard]] Status check_turn(const SignedManifest& wanted, const std::optional<AcceptedManifest>& accepted,
                                bool has_none);

// The serial of a manifest that is made now (milliseconds since 1970) to replace one of serial `before`; 0:
// there is none. bad_input: no serial is higher.
[[nodiscard]] Result<std::uint64_t> next_serial(std::uint64_t now, std::uint64_t before);

} // namespace sieve::fleet
