// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a node keeps of its fleet, below the state directory:
//
//     accepted.json             fleet, serial and digest of the last manifest that was accepted
//     blobs/SHA-256             blobs whose digest was checked; SHA-256.part is on its way
//     manifests/DIGEST/SET      a link to the set's blob
//     serials/DIGEST            a link that says the manifest's serial; it leads nowhere
//     current                   a link to one of the manifests
//     held                      a link to the last manifest that was found in force
//     refused                   a link to the wanted manifest, if one of its sets was refused
//     known/SHA-256             a link, for a blob that was in force or is gone back to; it leads nowhere
//
// Sets of the configuration name current/SET as their source, so one rename changes all of them together, and
// the daemon's watch of files sees it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libsieve/fleet/manifest/acceptance.hpp"
#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

class NodeStore {
  public:
    // Makes what is missing; everything belongs to its owner alone. bad_input: cannot be made.
    [[nodiscard]] static Result<NodeStore> open(const std::string& folder);

    // Nothing: none was accepted, or what is kept of it cannot be understood. Errors: those of
    // read_small_file(); then nobody may take an older manifest for a newer one.
    [[nodiscard]] Result<std::optional<AcceptedManifest>> accepted() const;
    [[nodiscard]] Status accept(const AcceptedManifest& accepted) const;

    // The digest of the manifest that `current` leads to; empty: none.
    [[nodiscard]] std::string current() const;
    // Likewise of `held`.
    [[nodiscard]] std::string held() const;
    [[nodiscard]] Status hold(const std::string& digest) const;
    // Notes that a set of it was refused, before switch_back(); empty: nothing that is wanted was.
    [[nodiscard]] Status refuse(const std::string& digest) const;
    [[nodiscard]] std::string refused() const;
    // Notes that the size of these lists is no surprise (service/reconcile/together.hpp), of the last few
    // hundred.
    [[nodiscard]] Status know(const std::map<std::string, std::string>& blobs) const;
    // Of a manifest that was laid out; 0: it was not, or nothing is known of it.
    [[nodiscard]] std::uint64_t serial_of(const std::string& digest) const;
    // The sets of a manifest that was laid out, with the digests of their blobs.
    [[nodiscard]] std::map<std::string, std::string> sets_of(const std::string& digest) const;
    // Lays the manifest's links out and has `current` lead to them. The blobs must be there.
    [[nodiscard]] Status switch_to(const SignedManifest& manifest) const;
    // Has `current` lead to a manifest that was laid out before.
    [[nodiscard]] Status switch_back(const std::string& digest) const;

    [[nodiscard]] const std::string& folder() const { return folder_; }
    [[nodiscard]] std::string blob_path(const std::string& digest) const;
    // Removes the manifests that are not among these, and the blobs, whole or in part, that none of these
    // names and that are not in `named`.
    void keep_only(const std::vector<std::string>& manifests, std::set<std::string> named = {}) const;

  private:
    explicit NodeStore(std::string folder) : folder_(std::move(folder)) {}
    [[nodiscard]] std::string leads_to(const char* link) const;
    std::string folder_;
};

} // namespace sieve::fleet
