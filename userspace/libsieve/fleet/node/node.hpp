// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a follower asks of the machine that it runs on. A NodeKeeper does it; a child without privileges asks
// its parent's (node_link.hpp).
#pragma once

#include <map>
#include <string>

#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/fleet/manifest/node_report.hpp"
#include "libsieve/fleet/manifest/standing.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct NodeView {
    bool has_accepted = false;                 // some manifest, at any time
    std::string held{};                        // digest of the last manifest that was found in force
    std::string in_force{};                    // digest of the manifest that is known to be in force now
    std::string wanted{};                      // digest of the manifest that is being brought in, or was last
    NodeState state = NodeState::waiting;      // of `wanted`: fetching, in_force or failed; waiting: none is
    std::string error{};                       // of failed; of in_force what else is in force
    std::map<std::string, std::string> sets{}; // identities in force
    NodeTraffic before{};                      // while what was before the last switch was in force
    NodeTraffic after{};                       // since the last switch has come into force
};

class Node {
  public:
    virtual ~Node() = default;
    [[nodiscard]] virtual NodeView view() = 0;
    // From here on, no older manifest is accepted. bad_input: this one is older, or another one of its
    // serial. `no`: this node has none yet, and may take this one not now (acceptance.hpp).
    [[nodiscard]] virtual Status accept(const SignedManifest& manifest) = 0;
    // Begins to bring it in, in place of what was begun before; view() tells what becomes of it. Does nothing
    // more if it has begun already. bad_input: it may not come in (acceptance.hpp).
    [[nodiscard]] virtual Status bring_in(const SignedManifest& manifest) = 0;
    // For metrics and the status page.
    virtual void tell(const FollowerNews& news) = 0;
    virtual void say(service::LogLevel level, const std::string& sentence) = 0;
};

} // namespace sieve::fleet
