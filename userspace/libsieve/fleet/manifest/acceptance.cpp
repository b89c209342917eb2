// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/acceptance.hpp"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

namespace sieve::fleet {

namespace {

// The highest accepted serial that counts; 0: none does.
std::uint64_t accepted_serial(const AcceptedManifest& before, std::span<const std::string> trusted) {
    if (before.by_key.empty()) return before.serial; // nobody knows whose it was
    std::uint64_t highest = 0;
    for (const std::string& key : trusted)
        if (const auto found = before.by_key.find(key); found != before.by_key.end())
            highest = std::max(highest, found->second);
    return highest;
}

Status check_times(const Manifest& manifest, std::uint64_t now) {
    constexpr const char* first = "this node has accepted no manifest of the trusted keys before";
    if (manifest.valid_until == 0)
        return failure(ErrorKind::no,
                       fmt::format("the manifest does not say how long it is valid, and {}; `xdp-sieve "
                                   "fleet renew` signs it anew",
                                   first));
    if (now > manifest.valid_until + clock_tolerance)
        return failure(ErrorKind::no,
                       fmt::format("the manifest was valid until {}, and {}; `xdp-sieve fleet renew` signs "
                                   "it anew",
                                   time_text(manifest.valid_until), first));
    if (now + clock_tolerance < manifest.published_at)
        return failure(ErrorKind::no,
                       fmt::format("the manifest was made at {}, which is in the future by this node's "
                                   "clock, and {}",
                                   time_text(manifest.published_at), first));
    return {};
}

} // namespace

Status check_succession(const SignedManifest& published, const std::optional<AcceptedManifest>& before,
                        std::span<const std::string> trusted, std::uint64_t now) {
    if (before && published.digest == before->digest) return {};
    const std::uint64_t serial = before ? accepted_serial(*before, trusted) : 0;
    if (serial == 0) return check_times(published.manifest, now / 1000);
    if (published.manifest.serial > serial) return {};
    return bad_input(fmt::format(
        "the manifest has serial {}, and serial {} is accepted here; a rollback is a new manifest that "
        "`xdp-sieve fleet rollback` signs",
        published.manifest.serial, serial));
}

AcceptedManifest accepted_as(const SignedManifest& published, const std::optional<AcceptedManifest>& before) {
    AcceptedManifest accepted{published.manifest.serial,
                              published.digest,
                              published.manifest.previous,
                              published.manifest.rollout.on_failure == OnRolloutFailure::rollback,
                              before ? before->by_key : std::map<std::string, std::uint64_t>(),
                              published.manifest.fleet};
    for (const std::string& key : published.signers) {
        std::uint64_t& highest = accepted.by_key[key];
        highest = std::max(highest, published.manifest.serial);
    }
    return accepted;
}

Status check_turn(const SignedManifest& wanted, const std::optional<AcceptedManifest>& accepted,
                  bool has_none) {
    if (accepted && wanted.digest == accepted->digest) return {};
    if (accepted && wanted.digest == accepted->previous && (accepted->may_go_back || has_none)) return {};
    return bad_input("the manifest is neither the accepted one nor one that this node may go back to");
}

Result<std::uint64_t> next_serial(std::uint64_t now, std::uint64_t before) {
    if (before == std::numeric_limits<std::uint64_t>::max())
        return bad_input(fmt::format("the published manifest has serial {}, and none is higher, expected one "
                                     "of a clock; was the key that signed it stolen? Take that key out of "
                                     "trusted-keys, and then `xdp-sieve fleet repair`",
                                     before));
    return std::max(now, before + 1);
}

} // namespace sieve::fleet
