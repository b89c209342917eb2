// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/server_addresses.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "libsieve/service/download/url.hpp"

namespace sieve::fleet {

namespace {

// Nothing for a loopback address.
std::optional<ServerAddress> address_of(const sockaddr& from) {
    in6_addr address{};
    std::uint16_t port = 0;
    if (from.sa_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &from, sizeof(v4));
        if (ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) return std::nullopt;
        address.s6_addr[10] = address.s6_addr[11] = 0xff;
        std::memcpy(&address.s6_addr[12], &v4.sin_addr, sizeof(v4.sin_addr));
        port = v4.sin_port;
    } else if (from.sa_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, &from, sizeof(v6));
        if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) return std::nullopt;
        address = v6.sin6_addr;
        port = v6.sin6_port;
    } else {
        return std::nullopt;
    }
    ServerAddress found{.port = ntohs(port)};
    for (const std::uint8_t byte : address.s6_addr) found.address = found.address << 8 | byte;
    return found;
}

std::vector<ServerAddress> resolve(const std::string& url) {
    // "https://HOST:PORT", where HOST may be "[ADDRESS]".
    std::string server = service::server_of(url);
    const std::size_t scheme = server.find("://");
    const std::size_t colon = server.rfind(':');
    if (scheme == std::string::npos || colon <= scheme) return {};
    const std::string port = server.substr(colon + 1);
    std::string host = server.substr(scheme + 3, colon - scheme - 3);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &list) != 0) return {};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
    std::vector<ServerAddress> found;
    for (const addrinfo* one = list; one != nullptr; one = one->ai_next)
        if (const auto address = address_of(*one->ai_addr)) found.push_back(*address);
    return found;
}

} // namespace

std::vector<ServerAddress> ServerAddresses::look_up() {
    std::vector<ServerAddress> all;
    for (const std::string& url : urls_) {
        if (auto found = resolve(url); !found.empty()) known_[url] = std::move(found);
        for (const ServerAddress& one : known_[url])
            if (std::ranges::find(all, one) == all.end() && all.size() < most_servers) all.push_back(one);
    }
    return all;
}

} // namespace sieve::fleet
