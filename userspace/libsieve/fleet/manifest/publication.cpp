// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/publication.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/fleet/manifest/acceptance.hpp"
#include "libsieve/fleet/servers/etcd_paths.hpp"
#include "libsieve/fleet/servers/sha256.hpp"

namespace sieve::fleet {

namespace {

// Kept manifests beyond the newest ones and `previous`, which the next transaction removes.
Result<std::vector<std::string>> outdated(EtcdClient& etcd, const EtcdPaths& paths,
                                          const std::string& previous) {
    SIEVE_ASSIGN(const EtcdKeys kept, etcd.read_prefix(paths.history()));
    std::vector<std::pair<std::int64_t, std::string>> by_age;
    for (const auto& [key, value] : kept.keys)
        if (key != paths.in_history(previous)) by_age.emplace_back(value.modified, key);
    std::sort(by_age.begin(), by_age.end());
    std::vector<std::string> keys;
    const std::size_t others = kept_manifests - 1 - (by_age.size() < kept.keys.size() ? 1 : 0);
    for (std::size_t i = 0; i + others < by_age.size(); i++) keys.push_back(by_age[i].second);
    return keys;
}

} // namespace

std::uint64_t milliseconds_now() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                          std::chrono::system_clock::now().time_since_epoch())
                                          .count());
}

namespace {

Result<Publication> manifest_in(const EtcdKeys& keys, const std::string& fleet,
                                std::span<const PublicKey> pinned) {
    const EtcdPaths paths(fleet);
    Publication publication;
    if (const auto found = keys.keys.find(paths.manifest()); found != keys.keys.end()) {
        SIEVE_ASSIGN(publication.manifest, open_envelope(found->second.value, fleet, pinned));
        publication.manifest_revision = found->second.modified;
    }
    return publication;
}

} // namespace

Result<Publication> publication_in(const EtcdKeys& keys, const std::string& fleet,
                                   std::span<const PublicKey> pinned) {
    const EtcdPaths paths(fleet);
    SIEVE_ASSIGN(Publication publication, manifest_in(keys, fleet, pinned));
    if (const auto found = keys.keys.find(paths.rollout()); found != keys.keys.end()) {
        SIEVE_ASSIGN(publication.rollout, parse_rollout(found->second.value));
        publication.rollout_revision = found->second.modified;
    }
    return publication;
}

Result<Publication> read_publication(EtcdClient& etcd, const std::string& fleet,
                                     std::span<const PublicKey> pinned) {
    SIEVE_ASSIGN(const EtcdKeys keys, etcd.read_prefix(EtcdPaths(fleet).now()));
    return publication_in(keys, fleet, pinned);
}

Result<Publication> read_replaced(EtcdClient& etcd, const std::string& fleet,
                                  std::span<const PublicKey> pinned) {
    const EtcdPaths paths(fleet);
    SIEVE_ASSIGN(const EtcdKeys keys, etcd.read_prefix(paths.now()));
    SIEVE_ASSIGN(Publication publication, manifest_in(keys, fleet, pinned));
    if (const auto found = keys.keys.find(paths.rollout()); found != keys.keys.end())
        if (Result<RolloutRecord> record = parse_rollout(found->second.value))
            publication.rollout = std::move(*record);
    return publication;
}

std::string base_of(const Publication& present) {
    if (!present.manifest) return {};
    const SignedManifest& manifest = *present.manifest;
    // Whoever can spoil the record can also write that the rollout is complete.
    if (!present.rollout || present.rollout->manifest != manifest.digest) return manifest.digest;
    return has_come_to_all(manifest, *present.rollout) ? manifest.digest : manifest.manifest.previous;
}

Result<SignedManifest> read_earlier(EtcdClient& etcd, const std::string& fleet,
                                    std::span<const PublicKey> pinned, const std::string& digest) {
    const std::string key = EtcdPaths(fleet).in_history(digest);
    SIEVE_ASSIGN(const EtcdKeys keys, etcd.read(key));
    const auto found = keys.keys.find(key);
    if (found == keys.keys.end())
        return bad_input(fmt::format("fleet {}: manifest {} is no longer kept", fleet, brief(digest)));
    SIEVE_ASSIGN(SignedManifest opened, open_envelope(found->second.value, fleet, pinned));
    if (opened.digest != digest)
        return bad_input(fmt::format("fleet {}: another manifest is kept as {}", fleet, brief(digest)));
    return opened;
}

Result<SignedManifest> publish_manifest(EtcdClient& etcd, Manifest manifest, const Publication& before,
                                        const SigningKey& key, std::uint64_t now, std::uint64_t valid) {
    const EtcdPaths paths(manifest.fleet);
    SIEVE_ASSIGN(manifest.serial, next_serial(now, before.manifest ? before.manifest->manifest.serial : 0));
    manifest.published_at = std::max<std::uint64_t>(1, now / 1000);
    manifest.valid_until = manifest.published_at + valid;
    SIEVE_ASSIGN(const std::string envelope, sign_manifest(manifest, key));
    const std::string digest = manifest_digest(manifest);
    const RolloutRecord rollout{.manifest = digest, .since = now, .by = "operator"};
    SIEVE_ASSIGN(std::vector<std::string> removals, outdated(etcd, paths, manifest.previous));
    const EtcdTransaction transaction{
        .conditions = {{paths.manifest(), before.manifest_revision}},
        .puts = {{paths.manifest(), envelope},
                 {paths.rollout(), rollout_text(rollout)},
                 {paths.in_history(digest), envelope}},
        .removals = std::move(removals),
    };
    const Result<EtcdOutcome> outcome = etcd.commit(transaction);
    const SignedManifest published{manifest, digest, {key.id()}};
    if (outcome && outcome->succeeded) return published;
    // An answer that got lost may have been a success, and a second attempt then fails on the first one's
    // work.
    SIEVE_ASSIGN(const EtcdKeys there, etcd.read(paths.manifest()));
    const auto found = there.keys.find(paths.manifest());
    if (found != there.keys.end() && found->second.value == envelope) return published;
    if (!outcome) return tl::unexpected(outcome.error());
    return failure(ErrorKind::changed_meanwhile,
                   fmt::format("fleet {}: somebody else published at the same time; nothing was published",
                               manifest.fleet));
}

Manifest rollback_of(const SignedManifest& published, const SignedManifest& target) {
    Manifest manifest = renewal_of(target);
    // Not the one that is taken back: nothing is to build on it any more.
    manifest.rolls_back = published.digest;
    return manifest;
}

Manifest renewal_of(const SignedManifest& published) {
    Manifest manifest = published.manifest;
    manifest.previous = published.digest;
    manifest.rolls_back.clear();
    manifest.rollout.stages = {Stage{}};
    manifest.rollout.soak_seconds = 0;
    manifest.rollout.on_failure = OnRolloutFailure::halt;
    return manifest;
}

Result<std::size_t> remove_untrusted(EtcdClient& etcd, const std::string& fleet,
                                     std::span<const PublicKey> pinned) {
    const EtcdPaths paths(fleet);
    SIEVE_ASSIGN(const EtcdKeys now, etcd.read(paths.manifest()));
    SIEVE_ASSIGN(const EtcdKeys history, etcd.read_prefix(paths.history()));
    std::size_t count = 0;
    for (const EtcdKeys* keys : {&now, &history})
        for (const auto& [key, value] : keys->keys) {
            if (open_envelope(value.value, fleet, pinned)) continue;
            EtcdTransaction transaction{.conditions = {{key, value.modified}}, .removals = {key}};
            if (key == paths.manifest()) transaction.removals.push_back(paths.rollout());
            SIEVE_ASSIGN(const EtcdOutcome outcome, etcd.commit(transaction));
            if (!outcome.succeeded)
                return failure(ErrorKind::changed_meanwhile,
                               fmt::format("fleet {}: somebody published at the same time; {} of the "
                                           "manifests were taken away",
                                           fleet, count));
            count++;
        }
    return count;
}

Result<bool> change_rollout(EtcdClient& etcd, const Publication& before, const RolloutRecord& record) {
    if (!before.manifest) return failure(ErrorKind::no, "nothing is published");
    const EtcdPaths paths(before.manifest->manifest.fleet);
    SIEVE_ASSIGN(const EtcdOutcome outcome,
                 etcd.commit({.conditions = {{paths.manifest(), before.manifest_revision},
                                             {paths.rollout(), before.rollout_revision}},
                              .puts = {{paths.rollout(), rollout_text(record)}}}));
    return outcome.succeeded;
}

} // namespace sieve::fleet
