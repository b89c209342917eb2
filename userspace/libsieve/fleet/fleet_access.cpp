// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/fleet_access.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "libsieve/fleet/manifest.hpp"
#include "libsieve/util/input.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::fleet {

namespace {

constexpr std::size_t longest_secret = 4096;
constexpr std::size_t longest_pem = std::size_t{1} << 20; // an authority bundle has some 200 KB

// The first line of a file that only its owner can read.
Result<std::string> read_secret(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0)
        return bad_input(fmt::format("{}: cannot be read: {}", printable(path), errno_text(errno)));
    if ((info.st_mode & 077) != 0)
        return bad_input(fmt::format("{}: others may read or write it (mode {:o}), expected mode 600",
                                     printable(path), info.st_mode & 07777));
    SIEVE_ASSIGN(Input input, Input::of(path));
    std::string text(longest_secret, '\0');
    SIEVE_ASSIGN(const std::size_t size, input.read_all(text.data(), text.size()));
    text.resize(size);
    text.resize(std::min(text.size(), text.find_first_of("\r\n")));
    if (text.empty()) return bad_input(fmt::format("{}: empty, expected a secret", printable(path)));
    return text;
}

// The text of a PEM file; without a path none.
Result<std::string> read_pem(const std::string& path) {
    if (path.empty()) return std::string();
    SIEVE_ASSIGN(Input input, Input::of(path));
    std::string text(longest_pem + 1, '\0');
    SIEVE_ASSIGN(const std::size_t size, input.read_all(text.data(), text.size()));
    text.resize(size);
    if (size > longest_pem || text.find("-----BEGIN") == std::string::npos)
        return bad_input(fmt::format("{}: expected certificates or a key (PEM) of at most {} bytes",
                                     printable(path), longest_pem));
    return text;
}

Result<HttpAccess> read_access(const service::ServerAccess& access) {
    HttpAccess http;
    SIEVE_ASSIGN(http.authorities, read_pem(access.certificates));
    SIEVE_ASSIGN(http.certificate, read_pem(access.client_certificate));
    SIEVE_ASSIGN(http.key, read_pem(access.client_key));
    return http;
}

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
    SIEVE_ASSIGN(access.etcd.access, read_access(configuration.etcd.access));
    access.etcd.user = configuration.etcd.user;
    if (!configuration.etcd.password_file.empty()) {
        SIEVE_ASSIGN(access.etcd.password, read_secret(configuration.etcd.password_file));
    }
    access.store.url = configuration.store.url;
    access.store.rate = configuration.store.rate;
    SIEVE_ASSIGN(access.store.access, read_access(configuration.store.access));
    access.store.access.region = configuration.store.region;
    if (const std::string& path = configuration.store.credentials_file; !path.empty()) {
        SIEVE_ASSIGN(const std::string secret, read_secret(path));
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
    constexpr std::string_view scheme = "http://";
    if (!url.starts_with(scheme)) return false;
    const std::string_view rest = std::string_view(url).substr(scheme.size());
    std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
    if (const std::size_t at = host.rfind('@'); at != std::string_view::npos) host.remove_prefix(at + 1);
    for (const std::string_view own : {"localhost", "127.0.0.1", "[::1]"})
        if (host == own || (host.starts_with(own) && host[own.size()] == ':')) return false;
    return true;
}

} // namespace sieve::fleet
