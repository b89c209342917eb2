// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/manifest_fields.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <sieve/policy.h>

#include "libsieve/fleet/manifest/fields.hpp"
#include "libsieve/fleet/servers/sha256.hpp"

namespace sieve::fleet {

namespace {

void write_set(FieldWriter& to, const ManifestSet& set) {
    to.text(set.name);
    to.number(static_cast<std::uint64_t>(set.as));
    to.text(set.digest);
    to.number(set.bytes);
    to.number(set.entries);
    to.number(std::bit_cast<std::uint64_t>(set.rate));
    to.text(set.identity);
    to.text(set.action);
}

ManifestSet read_set(FieldReader& from) {
    ManifestSet set;
    set.name = from.text();
    set.as = from.number(1) == 0 ? BlobKind::image : BlobKind::feed;
    set.digest = from.text();
    set.bytes = from.number();
    set.entries = from.number();
    set.rate = std::bit_cast<double>(from.number());
    set.identity = from.text();
    set.action = from.text();
    return set;
}

void write_rollout(FieldWriter& to, const Rollout& rollout) {
    to.number(rollout.stages.size());
    for (const Stage& stage : rollout.stages) {
        to.text(stage.label);
        to.number(stage.permille);
    }
    to.number(rollout.soak_seconds);
    to.number(rollout.most_jump_permille);
    to.number(static_cast<std::uint64_t>(rollout.on_failure));
}

Rollout read_rollout(FieldReader& from) {
    constexpr std::uint64_t most = ~std::uint32_t{0};
    Rollout rollout;
    rollout.stages.resize(from.number(most_stages));
    for (Stage& stage : rollout.stages) {
        stage.label = from.text();
        stage.permille = static_cast<std::uint32_t>(from.number(most));
    }
    rollout.soak_seconds = static_cast<std::uint32_t>(from.number(most));
    rollout.most_jump_permille = static_cast<std::uint32_t>(from.number(most));
    rollout.on_failure = from.number(1) == 0 ? OnRolloutFailure::halt : OnRolloutFailure::rollback;
    return rollout;
}

static_assert(static_cast<int>(BlobKind::feed) == 1 && static_cast<int>(OnRolloutFailure::rollback) == 1,
              "these are what the fields say");

} // namespace

std::string manifest_fields(const SignedManifest& manifest) {
    FieldWriter to;
    const Manifest& wanted = manifest.manifest;
    to.text(wanted.fleet);
    to.number(wanted.serial);
    to.number(wanted.published_at);
    to.number(wanted.valid_until);
    to.text(wanted.previous);
    to.text(wanted.rolls_back);
    to.number(wanted.sets.size());
    for (const ManifestSet& set : wanted.sets) write_set(to, set);
    write_rollout(to, wanted.rollout);
    to.number(manifest.signatures.size());
    for (const ManifestSignature& one : manifest.signatures) {
        to.text(one.key);
        to.text(one.bytes);
    }
    return to.bytes();
}

Result<SignedManifest> open_manifest_fields(std::string_view fields, const std::string& fleet,
                                            std::span<const PublicKey> pinned) {
    FieldReader from(fields);
    Manifest manifest;
    manifest.fleet = from.text();
    manifest.serial = from.number();
    manifest.published_at = from.number();
    manifest.valid_until = from.number();
    manifest.previous = from.text();
    manifest.rolls_back = from.text();
    manifest.sets.resize(from.number(SIEVE_MAX_SETS));
    for (ManifestSet& set : manifest.sets) set = read_set(from);
    manifest.rollout = read_rollout(from);
    std::vector<ManifestSignature> signatures(from.number(most_signatures));
    for (ManifestSignature& one : signatures) {
        one.key = from.text();
        one.bytes = from.text();
    }
    if (!from.complete()) return bad_input("what is to be brought in is no manifest");
    const std::string text = manifest_text(manifest);
    const std::string message = std::string(signature_context) + text;
    SignedManifest opened;
    for (const ManifestSignature& one : signatures) {
        const bool right = std::ranges::any_of(pinned, [&](const PublicKey& key) {
            return key.id() == one.key && key.signed_by(message, one.bytes);
        });
        if (!right) continue;
        opened.signers.push_back(one.key);
        opened.signatures.push_back(one);
    }
    if (opened.signatures.empty()) return bad_input("what is to be brought in was signed by no pinned key");
    // The text was written here. What remains is whether each field is within its bounds.
    SIEVE_ASSIGN(opened.manifest, parse_manifest(text));
    if (opened.manifest.fleet != fleet) return bad_input("the manifest was made for another fleet");
    opened.digest = sha256_of(text);
    return opened;
}

} // namespace sieve::fleet
