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
#include "libsieve/util/text/counted.hpp"

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

// Both records must be there.
Status check_rollout(const Publication& present, const FleetAccess& access) {
    if (!present.manifest)
        return failure(ErrorKind::no, fmt::format("fleet {}: nothing is published", access.fleet));
    if (!present.rollout)
        return failure(ErrorKind::no,
                       fmt::format("fleet {}: the record of the rollout is missing; the next "
                                   "`xdp-sieve publish` or `xdp-sieve fleet rollback` writes it",
                                   access.fleet));
    return {};
}

// What somebody put back in etcd, and nodes refuse, must not be signed anew.
Status check_newest(const Publication& present, std::uint64_t last_serial) {
    if (!present.manifest || present.manifest->manifest.serial >= last_serial) return {};
    return bad_input(fmt::format(
        "fleet {}: the published manifest has serial {}, and {} was published with this key before: somebody "
        "has put back an old one, or etcd has come back from a backup; publish every set anew, with --only, "
        "or build on the old one with --force",
        present.manifest->manifest.fleet, present.manifest->manifest.serial, last_serial));
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

// The sets of the manifest that the next one builds on.
Result<std::vector<ManifestSet>> sets_before(EtcdClient& etcd, const FleetAccess& access,
                                             const Publication& present) {
    const std::string base = base_of(present);
    if (base.empty()) return std::vector<ManifestSet>();
    if (base == present.manifest->digest) return present.manifest->manifest.sets;
    SIEVE_ASSIGN(const SignedManifest earlier, read_earlier(etcd, access.fleet, access.pinned, base));
    return earlier.manifest.sets;
}

bool has(std::span<const control::SetSpec> sets, const std::string& name) {
    return std::ranges::find(sets, name, &control::SetSpec::name) != sets.end();
}

// Sets of the present manifest that the new one does not have as they are.
void say_what_is_left(const Publication& present, std::span<const ManifestSet> before,
                      std::span<const control::SetSpec> fresh, const control::Observer& observer) {
    const std::string base = base_of(present);
    if (!present.manifest || base == present.manifest->digest) return;
    for (const ManifestSet& set : present.manifest->manifest.sets) {
        if (has(fresh, set.name) || std::ranges::find(before, set) != before.end()) continue;
        const bool stays = std::ranges::find(before, set.name, &ManifestSet::name) != before.end();
        observer.remark(fmt::format(
            "set {}: is {}, since the rollout of manifest {} is {} at stage {} of {}", set.name,
            stays ? fmt::format("taken as manifest {} has it", brief(base)) : "not in the new manifest",
            brief(present.manifest->digest), rollout_state_name(present.rollout->state),
            present.rollout->stage + 1, present.manifest->manifest.rollout.stages.size()));
    }
}

// The newest manifest before the present one that has other sets and was not taken back.
Result<SignedManifest> find_previous(EtcdClient& etcd, const FleetAccess& access, SignedManifest one) {
    const std::vector<ManifestSet> present = one.manifest.sets;
    std::vector<std::string> taken_back;
    do {
        taken_back.push_back(one.manifest.rolls_back);
        if (one.manifest.previous.empty())
            return failure(ErrorKind::no,
                           fmt::format("fleet {}: there is no manifest before the present one that has other "
                                       "sets and was not taken back",
                                       access.fleet));
        SIEVE_ASSIGN(one, read_earlier(etcd, access.fleet, access.pinned, one.manifest.previous));
    } while (one.manifest.sets == present || std::ranges::find(taken_back, one.digest) != taken_back.end());
    return one;
}

Result<SignedManifest> find_earlier(EtcdClient& etcd, const FleetAccess& access,
                                    const SignedManifest& present, const std::string& to) {
    if (to.empty()) return find_previous(etcd, access, present);
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
Result<std::uint64_t> offer_delta(ObjectStore& store, std::span<const ManifestSet> sets,
                                  const BlobSource& blob, bool again) {
    if (blob.set.as != BlobKind::feed) return 0;
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
    SIEVE_ASSIGN(const Publication now, present(etcd, access, request.force));
    Result<std::vector<ManifestSet>> before = sets_before(etcd, access, now);
    if (!before && !request.only && !request.force) return tl::unexpected(before.error());
    if (!before) before.emplace();
    const auto carried = request.only ? 0 : std::ranges::count_if(*before, [&](const ManifestSet& set) {
        return !has(request.sets, set.name);
    });
    if (request.sets.size() + static_cast<std::size_t>(carried) > SIEVE_MAX_SETS)
        return invalid_request(fmt::format("fleet {}: {} named and {} carried over, expected at most {} "
                                           "in a manifest; --only carries none over",
                                           access.fleet, counted(request.sets.size(), "set is", "sets are"),
                                           carried, SIEVE_MAX_SETS));
    if (carried > 0 && !request.force) SIEVE_TRY(check_newest(now, request.last_serial));
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
        const Result<std::uint64_t> delta = offer_delta(store, *before, blob, request.again);
        if (!delta)
            observer.remark(
                fmt::format("set {}: nodes take the whole feed, since there is no difference to the one "
                            "before: {}",
                            blob.set.name, delta.error().message));
        published.sets.push_back({blob.set, uploaded, delta.value_or(0)});
    }
    Manifest manifest;
    manifest.fleet = access.fleet;
    manifest.previous = base_of(now);
    manifest.rollout = request.rollout;
    if (!request.only) {
        for (const ManifestSet& set : *before)
            if (!has(request.sets, set.name)) published.sets.push_back({set, std::nullopt, 0});
        say_what_is_left(now, *before, request.sets, observer);
    }
    for (const PublishedSet& one : published.sets) manifest.sets.push_back(one.set);
    std::ranges::sort(manifest.sets, {}, &ManifestSet::name);
    SIEVE_ASSIGN(published.manifest,
                 publish_manifest(etcd, std::move(manifest), now, key, milliseconds_now(), request.valid));
    return published;
}

Result<SignedManifest> roll_back(const FleetAccess& access, const SigningKey& key, const std::string& to,
                                 std::uint64_t valid, std::uint64_t last_serial) {
    SIEVE_TRY(check_key(access, key));
    EtcdClient etcd(access.etcd);
    SIEVE_ASSIGN(const Publication before, read_replaced(etcd, access.fleet, access.pinned));
    if (!before.manifest)
        return failure(ErrorKind::no, fmt::format("fleet {}: nothing is published", access.fleet));
    if (to.empty()) SIEVE_TRY(check_newest(before, last_serial));
    SIEVE_ASSIGN(const SignedManifest target, find_earlier(etcd, access, *before.manifest, to));
    return publish_manifest(etcd, rollback_of(*before.manifest, target), before, key, milliseconds_now(),
                            valid);
}

Result<SignedManifest> renew(const FleetAccess& access, const SigningKey& key, std::uint64_t valid,
                             std::uint64_t last_serial) {
    SIEVE_TRY(check_key(access, key));
    EtcdClient etcd(access.etcd);
    SIEVE_ASSIGN(const Publication before, read_publication(etcd, access.fleet, access.pinned));
    SIEVE_TRY(check_rollout(before, access));
    SIEVE_TRY(check_newest(before, last_serial));
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
        SIEVE_TRY(check_rollout(before, access));
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
