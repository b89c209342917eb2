// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The fleet that a host belongs to, as the configuration names it: [fleet], [fleet.etcd] and [fleet.store].
// libsieve/fleet/ gives it its meaning.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/service/download/http_access.hpp"

namespace sieve::service {

struct FleetEtcd {
    std::vector<std::string> endpoints{}; // URLs
    ServerAccess access{};
    std::string user{}; // empty: etcd asks for none
    std::string password_file{};

    [[nodiscard]] friend bool operator==(const FleetEtcd&, const FleetEtcd&) = default;
};

struct FleetStore {
    std::string url{}; // of the folder or bucket
    ServerAccess access{};
    std::string region{};           // of S3; empty: plain HTTP
    std::string credentials_file{}; // holds "USER:PASSWORD", or of S3 "ACCESS KEY:SECRET KEY"; empty: none
    std::uint64_t rate = 0;         // bytes per second at most; 0: no limit

    [[nodiscard]] friend bool operator==(const FleetStore&, const FleetStore&) = default;
};

struct FleetConfiguration {
    std::string name{};
    std::vector<std::string> trusted_keys{}; // files of public keys
    std::string node{};                      // this host's name in the fleet; empty: the host name
    std::vector<std::string> labels{};
    std::chrono::seconds report{std::chrono::seconds{60}}; // how often at the latest
    FleetEtcd etcd{};
    FleetStore store{};

    [[nodiscard]] friend bool operator==(const FleetConfiguration&, const FleetConfiguration&) = default;
};

} // namespace sieve::service
