// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What an operator does to a fleet: publish, roll back, hold a rollout and let it go on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/fleet/manifest/fleet_access.hpp"
#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/fleet/manifest/publication.hpp"
#include "libsieve/fleet/servers/object_store.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct PublishRequest {
    std::vector<control::SetSpec> sets{};
    std::optional<BlobKind> as{};
    bool only = false;  // the manifest has no other sets; else those of the present one stay
    bool again = false; // sends blobs that are in the store already, too
    // Replaces a manifest that no pinned key has signed, and builds on one that is older than `last_serial`.
    bool force = false;
    Rollout rollout{};
    std::uint64_t valid = standard_validity; // seconds
    std::uint64_t last_serial = 0; // of what this publisher published before (publisher_serials.hpp)
};

struct PublishedSet {
    ManifestSet set{};
    std::optional<Uploaded> uploaded{}; // nothing: it stayed as it was
    std::uint64_t delta_bytes = 0; // of the difference to the feed before (delta.hpp); 0: none is offered
};

struct Published {
    SignedManifest manifest{};
    std::vector<PublishedSet> sets{};
};

// Makes the blobs, stores them, and publishes the manifest. Nothing is published unless everything is.
// Errors: those of make_blob(), of the servers, and changed_meanwhile if somebody else published since this
// one began; invalid_request for a key that the configuration does not trust, and for an image over http to
// another host; bad_input if sets would be carried over that are older than `last_serial`.
[[nodiscard]] Result<Published> publish(const FleetAccess& access, const SigningKey& key,
                                        const PublishRequest& request, const control::Observer& observer);

// Publishes the sets of the manifest before the present one, or of the one whose digest begins with `to`.
// bad_input without `to` if the present one is older than `last_serial`.
[[nodiscard]] Result<SignedManifest> roll_back(const FleetAccess& access, const SigningKey& key,
                                               const std::string& to, std::uint64_t valid = standard_validity,
                                               std::uint64_t last_serial = 0);

// Signs what is published anew, so that new nodes may take it for `valid` seconds from now on. `no` while its
// rollout is under way, or after it has stopped; bad_input if it is older than `last_serial`.
[[nodiscard]] Result<SignedManifest> renew(const FleetAccess& access, const SigningKey& key,
                                           std::uint64_t valid = standard_validity,
                                           std::uint64_t last_serial = 0);

// Takes out of etcd what no trusted key has signed: how many manifests there were.
[[nodiscard]] Result<std::size_t> repair(const FleetAccess& access);

// Holds the rollout at its stage, or lets it go on. `no` if it is over already.
enum class Hold : std::uint8_t { pause, resume };
[[nodiscard]] Result<RolloutRecord> hold_rollout(const FleetAccess& access, Hold hold);

} // namespace sieve::fleet
