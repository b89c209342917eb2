// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/publish.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libsieve/control/table/prepare.hpp"
#include "libsieve/fleet/blob_source.hpp"
#include "libsieve/fleet/servers/delta.hpp"
#include "libsieve/fleet/servers/etcd_client.hpp"
#include "libsieve/fleet/servers/etcd_paths.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/service/download/url.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::fleet {

namespace {

constexpr std::size_t shortest_digest = 6; // of a digest that a person types

Status check_key(const FleetAccess& access, const SigningKey& key) {
    const bool pinned =
        std::ranges::any_of(access.pinned, [&](const PublicKey& known) { return known.id() == key.id(); });
    if (pinned) return {};
    return invalid_request(
        fmt::format("key {} is not among the trusted-keys of fleet {}, so no node would follow "
                    "what it signs",
                    key.id(), access.fleet));
}

Status check_way(const FleetAccess& access, const BlobSource& blob) {
    if (blob.set.as != BlobKind::image || !is_readable_on_the_way(access.store.url)) return {};
    return invalid_request(
        fmt::format("set {}: an image holds secret hash keys, and {} is not encrypted; expected "
                    "an https store, or --as feed",
                    blob.set.name, service::displayed_url(access.store.url)));
}

// What is published now. With `force`, a manifest that is not right only counts as something to replace.
Result<Publication> present(EtcdClient& etcd, const FleetAccess& access, bool force) {
    Result<Publication> publication = read_replaced(etcd, access.fleet, access.pinned);
    if (publication || !force) return publication;
    const EtcdPaths paths(access.fleet);
    SIEVE_ASSIGN(const EtcdKeys keys, etcd.read_prefix(paths.now()));
    Publication replaced;
    if (const auto found = keys.keys.find(paths.manifest()); found != keys.keys.end())
        replaced.manifest_revision = found->second.modified;
    return replaced;
}

// The sets of the manifest: the new ones, and of the present ones those that stay.
std::vector<ManifestSet> merged(const Publication& before, const std::vector<PublishedSet>& fresh,
                                bool only) {
    std::vector<ManifestSet> sets;
    for (const PublishedSet& one : fresh) sets.push_back(one.set);
    if (!only && before.manifest)
        for (const ManifestSet& set : before.manifest->manifest.sets)
            if (std::ranges::none_of(fresh,
                                     [&](const PublishedSet& one) { return one.set.name == set.name; }))
                sets.push_back(set);
    std::ranges::sort(sets, {}, &ManifestSet::name);
    return sets;
}

Result<SignedManifest> find_earlier(EtcdClient& etcd, const FleetAccess& access,
                                    const SignedManifest& present, const std::string& to) {
    if (to.empty()) {
        if (present.manifest.previous.empty())
            return failure(ErrorKind::no, fmt::format("fleet {}: there is no manifest before the present one",
                                                      access.fleet));
        return read_earlier(etcd, access.fleet, access.pinned, present.manifest.previous);
    }
    const EtcdPaths paths(access.fleet);
    if (to.size() < shortest_digest || to.find_first_not_of("0123456789abcdef") != std::string::npos)
        return invalid_request(
            fmt::format("expected {} or more hexadecimal digits of a manifest's digest", shortest_digest));
    SIEVE_ASSIGN(const EtcdKeys keys, etcd.read_prefix(paths.in_history(to)));
    if (keys.keys.size() != 1)
        return failure(ErrorKind::no, fmt::format("fleet {}: {} manifests begin with {}, expected one",
                                                  access.fleet, keys.keys.size(), to));
    return read_earlier(etcd, access.fleet, access.pinned,
                        keys.keys.begin()->first.substr(paths.history().size()));
}

// Puts what turns the feed before into this one beside it, if that saves half of it. Bytes of the difference;
// 0: there is none. A feed before that the store has lost, say, only means that there is none.
Result<std::uint64_t> offer_delta(ObjectStore& store, const Publication& before, const BlobSource& blob,
                                  bool again) {
    if (blob.set.as != BlobKind::feed || !before.manifest) return 0;
    const std::vector<ManifestSet>& sets = before.manifest->manifest.sets;
    const auto old = std::ranges::find(sets, blob.set.name, &ManifestSet::name);
    if (old == sets.end() || old->as != BlobKind::feed || old->digest == blob.set.digest ||
        std::max(old->bytes, blob.set.bytes) > largest_for_delta)
        return 0;
    SIEVE_ASSIGN(const UniqueFd earlier, memory_file());
    SIEVE_TRY(store.download({old->digest, old->bytes}, earlier.get()));
    SIEVE_ASSIGN(const std::string digest, sha256_of_file(earlier.get()));
    if (digest != old->digest) return bad_input("the store has something else under the feed before");
    SIEVE_ASSIGN(const std::string delta, make_delta(earlier.get(), blob.content.get()));
    if (2 * delta.size() > blob.set.bytes) return 0;
    SIEVE_ASSIGN(const UniqueFd file, memory_file());
    SIEVE_TRY(write_all(file.get(), delta));
    SIEVE_TRY(store.put({sha256_of(delta), delta.size(), delta_name(old->digest, blob.set.digest)},
                        file.get(), again));
    return delta.size();
}

} // namespace

Result<Published> publish(const FleetAccess& access, const SigningKey& key, const PublishRequest& request,
                          const control::Observer& observer) {
    SIEVE_TRY(check_key(access, key));
    SIEVE_TRY(control::check_names(request.sets));
    EtcdClient etcd(access.etcd);
    SIEVE_ASSIGN(const Publication before, present(etcd, access, request.force));
    std::vector<BlobSource> blobs;
    for (const control::SetSpec& spec : request.sets) {
        SIEVE_ASSIGN(BlobSource blob, make_blob(spec, request.as, observer));
        SIEVE_TRY(check_way(access, blob));
        blobs.push_back(std::move(blob));
    }
    ObjectStore store(access.store);
    Published published;
    for (const BlobSource& blob : blobs) {
        SIEVE_ASSIGN(const Uploaded uploaded,
                     store.put({blob.set.digest, blob.set.bytes}, blob.content.get(), request.again));
        const Result<std::uint64_t> delta = offer_delta(store, before, blob, request.again);
        if (!delta)
            observer.remark(
                fmt::format("set {}: nodes take the whole feed, since there is no difference to the one "
                            "before: {}",
                            blob.set.name, delta.error().message));
        published.sets.push_back({blob.set, uploaded, delta.value_or(0)});
    }
    Manifest manifest;
    manifest.fleet = access.fleet;
    manifest.sets = merged(before, published.sets, request.only);
    manifest.rollout = request.rollout;
    for (const ManifestSet& set : manifest.sets)
        if (std::ranges::none_of(published.sets,
                                 [&](const PublishedSet& one) { return one.set.name == set.name; }))
            published.sets.push_back({set, std::nullopt, 0});
    SIEVE_ASSIGN(published.manifest,
                 publish_manifest(etcd, std::move(manifest), before, key, milliseconds_now(), request.valid));
    return published;
}

Result<SignedManifest> roll_back(const FleetAccess& access, const SigningKey& key, const std::string& to,
                                 std::uint64_t valid) {
    SIEVE_TRY(check_key(access, key));
    EtcdClient etcd(access.etcd);
    SIEVE_ASSIGN(const Publication before, read_replaced(etcd, access.fleet, access.pinned));
    if (!before.manifest)
        return failure(ErrorKind::no, fmt::format("fleet {}: nothing is published", access.fleet));
    SIEVE_ASSIGN(const SignedManifest target, find_earlier(etcd, access, *before.manifest, to));
    return publish_manifest(etcd, rollback_of(*before.manifest, target), before, key, milliseconds_now(),
                            valid);
}

Result<SignedManifest> renew(const FleetAccess& access, const SigningKey& key, std::uint64_t valid) {
    SIEVE_TRY(check_key(access, key));
    EtcdClient etcd(access.etcd);
    SIEVE_ASSIGN(const Publication before, read_publication(etcd, access.fleet, access.pinned));
    if (!before.manifest || !before.rollout)
        return failure(ErrorKind::no, fmt::format("fleet {}: nothing is published", access.fleet));
    // A renewal goes to all nodes at once, also to those whose stage has not come.
    if (before.rollout->manifest != before.manifest->digest ||
        before.rollout->state != RolloutState::complete)
        return failure(ErrorKind::no, fmt::format("fleet {}: the rollout is {}, expected complete",
                                                  access.fleet, rollout_state_name(before.rollout->state)));
    return publish_manifest(etcd, renewal_of(*before.manifest), before, key, milliseconds_now(), valid);
}

Result<std::size_t> repair(const FleetAccess& access) {
    EtcdClient etcd(access.etcd);
    return remove_untrusted(etcd, access.fleet, access.pinned);
}

Result<RolloutRecord> hold_rollout(const FleetAccess& access, Hold hold) {
    EtcdClient etcd(access.etcd);
    // Nodes change the record, too.
    constexpr int most_attempts = 5;
    for (int attempt = 0; attempt < most_attempts; attempt++) {
        SIEVE_ASSIGN(const Publication before, read_publication(etcd, access.fleet, access.pinned));
        if (!before.manifest || !before.rollout)
            return failure(ErrorKind::no, fmt::format("fleet {}: nothing is published", access.fleet));
        RolloutRecord record = *before.rollout;
        const bool wanted = hold == Hold::pause ? record.state == RolloutState::running
                                                : record.state == RolloutState::paused ||
                                                      record.state == RolloutState::halted;
        if (!wanted)
            return failure(ErrorKind::no, fmt::format("fleet {}: the rollout is {}", access.fleet,
                                                      rollout_state_name(record.state)));
        record.state = hold == Hold::pause ? RolloutState::paused : RolloutState::running;
        record.since = milliseconds_now();
        record.by = "operator";
        record.why.clear();
        SIEVE_ASSIGN(const bool changed, change_rollout(etcd, before, record));
        if (changed) return record;
    }
    return failure(ErrorKind::changed_meanwhile,
                   fmt::format("fleet {}: the rollout changed each time; nothing was changed", access.fleet));
}

} // namespace sieve::fleet
