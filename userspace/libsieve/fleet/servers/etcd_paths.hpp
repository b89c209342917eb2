// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where the records of a fleet are in etcd.
//
//     /xdp-sieve/FLEET/now/manifest        the envelope of the manifest (manifest.hpp)
//     /xdp-sieve/FLEET/now/rollout         how far it has come (rollout.hpp)
//     /xdp-sieve/FLEET/manifests/DIGEST    the envelopes of this manifest and of earlier ones
//     /xdp-sieve/FLEET/nodes/NODE          what a node says of itself (node_report.hpp), with a lease
//
// Nodes watch what is below now/. Its two records change in one transaction.
#pragma once

#include <string>

namespace sieve::fleet {

struct EtcdPaths {
    explicit EtcdPaths(const std::string& fleet) : root("/xdp-sieve/" + fleet + "/") {}

    std::string root;

    [[nodiscard]] std::string now() const { return root + "now/"; }
    [[nodiscard]] std::string manifest() const { return root + "now/manifest"; }
    [[nodiscard]] std::string rollout() const { return root + "now/rollout"; }
    [[nodiscard]] std::string history() const { return root + "manifests/"; }
    [[nodiscard]] std::string in_history(const std::string& digest) const { return history() + digest; }
    [[nodiscard]] std::string nodes() const { return root + "nodes/"; }
    [[nodiscard]] std::string node(const std::string& name) const { return nodes() + name; }
};

} // namespace sieve::fleet
