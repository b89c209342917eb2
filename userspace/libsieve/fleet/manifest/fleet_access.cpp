// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/fleet_access.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/service/download/credentials.hpp"
#include "libsieve/service/download/url.hpp"
#include "libsieve/util/files/secret_file.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::fleet {

namespace {

Result<std::string> name_of_host() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0)
        return bad_input("the host has no name: " + errno_text(errno));
    if (!is_fleet_name(name.data()))
        return bad_input(fmt::format("the host name {} cannot be a node's name; expected node in [fleet]",
                                     printable(name.data())));
    return std::string(name.data());
}

} // namespace

Result<FleetAccess> open_access(const service::FleetConfiguration& configuration) {
    FleetAccess access;
    access.fleet = configuration.name;
    access.etcd.endpoints = configuration.etcd.endpoints;
    SIEVE_ASSIGN(access.etcd.access.server, service::read_server_secrets(configuration.etcd.access));
    access.etcd.user = configuration.etcd.user;
    if (!configuration.etcd.password_file.empty()) {
        SIEVE_ASSIGN(access.etcd.password,
                     read_secret_line(configuration.etcd.password_file, "a password in one line"));
    }
    access.store.url = configuration.store.url;
    access.store.rate = configuration.store.rate;
    SIEVE_ASSIGN(access.store.access.server, service::read_server_secrets(configuration.store.access));
    access.store.access.region = configuration.store.region;
    if (const std::string& path = configuration.store.credentials_file; !path.empty()) {
        SIEVE_ASSIGN(const std::string secret, read_secret_line(path, "USER:PASSWORD"));
        const std::size_t colon = secret.find(':');
        if (colon == 0 || colon == std::string::npos)
            return bad_input(fmt::format("{}: expected USER:PASSWORD", printable(path)));
        access.store.access.user = secret.substr(0, colon);
        access.store.access.password = secret.substr(colon + 1);
    }
    for (const std::string& path : configuration.trusted_keys) {
        SIEVE_ASSIGN(PublicKey key, PublicKey::read(path));
        access.pinned.push_back(std::move(key));
    }
    access.node = configuration.node;
    if (access.node.empty()) {
        SIEVE_ASSIGN(access.node, name_of_host());
    }
    return access;
}

bool is_readable_on_the_way(const std::string& url) {
    // As libcurl understands it, which also takes HTTP:// and http:/.
    const std::string server = service::server_of(url);
    if (server.starts_with("https://")) return false;
    for (const char* own : {"http://localhost:", "http://127.0.0.1:", "http://[::1]:"})
        if (server.starts_with(own)) return false;
    return true;
}

} // namespace sieve::fleet
