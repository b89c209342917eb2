// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is published in a fleet, and changing it: one transaction that only one of several publishers wins.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/fleet/manifest/rollout.hpp"
#include "libsieve/fleet/servers/etcd_client.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct Publication {
    std::optional<SignedManifest> manifest{}; // nothing: none was published
    std::optional<RolloutRecord> rollout{};
    // Revisions of the two keys; 0: not there.
    std::int64_t manifest_revision = 0;
    std::int64_t rollout_revision = 0;
};

// The publication among these keys. bad_input for an envelope that is not right, or a record that cannot be
// understood.
[[nodiscard]] Result<Publication> publication_in(const EtcdKeys& keys, const std::string& fleet,
                                                 std::span<const PublicKey> pinned);
[[nodiscard]] Result<Publication> read_publication(EtcdClient& etcd, const std::string& fleet,
                                                   std::span<const PublicKey> pinned);

// For whoever replaces both keys: without the record if that cannot be understood.
[[nodiscard]] Result<Publication> read_replaced(EtcdClient& etcd, const std::string& fleet,
                                                std::span<const PublicKey> pinned);

// An earlier manifest, which etcd keeps under its digest. bad_input if it is not kept, or not right.
[[nodiscard]] Result<SignedManifest> read_earlier(EtcdClient& etcd, const std::string& fleet,
                                                  std::span<const PublicKey> pinned,
                                                  const std::string& digest);

// The digest of the manifest that the next one builds on: its `previous`, whose other sets it keeps. That is
// the present one, or the one before it if the rollout of the present one was stopped, or has not come to its
// last stage: then not all nodes were to have it. Empty: there is none.
[[nodiscard]] std::string base_of(const Publication& present);

// How many manifests etcd keeps of a fleet, the present one and the one before it included.
inline constexpr std::size_t kept_manifests = 16;

// Signs the manifest and makes it the present one, if `before` still is what it replaces. Sets its serial and
// its times. `now`: milliseconds since 1970; `valid`: seconds from then on. changed_meanwhile: somebody else
// published meanwhile.
[[nodiscard]] Result<SignedManifest> publish_manifest(EtcdClient& etcd, Manifest manifest,
                                                      const Publication& before, const SigningKey& key,
                                                      std::uint64_t now,
                                                      std::uint64_t valid = standard_validity);

// The manifest that takes the published one back: the sets of `target`, on all nodes at once. `target` is the
// one before it.
[[nodiscard]] Manifest rollback_of(const SignedManifest& published, const SignedManifest& target);

// The sets of the published manifest once more, for all nodes at once. That one is the one before it.
[[nodiscard]] Manifest renewal_of(const SignedManifest& published);

// Takes every envelope out of etcd that no pinned key has signed, or that is none; with the published one
// goes the record of its rollout. How many there were. Nodes keep what they have in force.
[[nodiscard]] Result<std::size_t> remove_untrusted(EtcdClient& etcd, const std::string& fleet,
                                                   std::span<const PublicKey> pinned);

// Replaces the record of the rollout if nothing of the publication has changed. False: something has.
[[nodiscard]] Result<bool> change_rollout(EtcdClient& etcd, const Publication& before,
                                          const RolloutRecord& record);

// Milliseconds since 1970.
[[nodiscard]] std::uint64_t milliseconds_now();

} // namespace sieve::fleet
