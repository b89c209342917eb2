// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From the [fleet] of a configuration to what clients need: the secrets in its files are read here.
#pragma once

#include <string>
#include <vector>

#include "libsieve/fleet/manifest/signing_key.hpp"
#include "libsieve/fleet/servers/etcd_client.hpp"
#include "libsieve/fleet/servers/object_store.hpp"
#include "libsieve/service/config/values/fleet_configuration.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct FleetAccess {
    std::string fleet{};
    EtcdSettings etcd{};
    StoreSettings store{};
    std::vector<PublicKey> pinned{};
    std::string node{}; // this host's name in the fleet
};

// bad_input for a file that cannot be read, a secret that others may read, or a key that is none.
[[nodiscard]] Result<FleetAccess> open_access(const service::FleetConfiguration& configuration);

// Whether what is sent to the URL can be read on the way: http to another host.
[[nodiscard]] bool is_readable_on_the_way(const std::string& url);

} // namespace sieve::fleet
