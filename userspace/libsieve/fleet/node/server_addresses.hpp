// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The addresses of the servers that a node depends on: a list that has one of them in force would keep the
// next manifest away.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "libsieve/fleet/manifest/standing.hpp"

namespace sieve::fleet {

class ServerAddresses {
  public:
    // Of etcd and of the store.
    explicit ServerAddresses(std::vector<std::string> urls) : urls_(std::move(urls)) {}

    // Asks the resolver for each name; it may take as long as that does. Of a name that cannot be resolved
    // now, what was known before. Without loopback addresses, and at most most_servers.
    [[nodiscard]] std::vector<ServerAddress> look_up();

  private:
    std::vector<std::string> urls_;
    std::map<std::string, std::vector<ServerAddress>> known_;
};

} // namespace sieve::fleet
