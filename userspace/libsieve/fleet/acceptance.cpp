// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/acceptance.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace sieve::fleet {

Status check_succession(const SignedManifest& published, const std::optional<Accepted>& before) {
    if (!before || published.digest == before->digest || published.manifest.serial > before->serial)
        return {};
    return bad_input(fmt::format(
        "the manifest has serial {}, and serial {} is accepted here; a rollback is a new manifest that "
        "`xdp-sieve fleet rollback` signs",
        published.manifest.serial, before->serial));
}

Accepted accepted_as(const SignedManifest& published) {
    return {published.manifest.serial, published.digest, published.manifest.previous,
            published.manifest.rollout.on_failure == OnFailure::rollback};
}

Status check_turn(const SignedManifest& wanted, const std::optional<Accepted>& accepted, bool has_none) {
    if (accepted && wanted.digest == accepted->digest) return {};
    if (accepted && wanted.digest == accepted->previous && (accepted->may_go_back || has_none)) return {};
    return bad_input("the manifest is neither the accepted one nor one that this node may go back to");
}

std::uint64_t next_serial(std::uint64_t now, std::uint64_t before) {
    return std::max(now, before + 1);
}

} // namespace sieve::fleet
