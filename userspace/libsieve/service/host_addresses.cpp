// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/host_addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/core.h>

#include <sieve/prefix.h>

#include "libsieve/feeds/key_text.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

constexpr std::uint32_t ssh_port = 22;

uint128 of_ipv4(std::uint32_t address) { // in host order
    return all_ipv4.first | address;
}

bool is_loopback(uint128 address) {
    return is_ipv4(address) ? (static_cast<std::uint32_t>(address) >> 24) == 127 : address <= 1;
}

// An address as people write it; a zone is left out.
std::optional<uint128> parse_address(std::string_view text) {
    text = text.substr(0, text.find('%'));
    const Result<sieve_key> key = parse_key(text, SIEVE_FIELD_SRC);
    if (!key) return std::nullopt;
    const int word = sieve_address_word(SIEVE_FIELD_SRC);
    return address_number(key->word[word], key->word[word + 1]);
}

std::vector<std::string> words_of(const std::string& line) {
    std::istringstream stream(line);
    return {std::istream_iterator<std::string>(stream), {}};
}

template <class Visit>
void each_line(std::string_view text, const Visit& visit) {
    std::istringstream stream{std::string(text)};
    for (std::string line; std::getline(stream, line);) visit(words_of(line));
}

template <class Number>
std::optional<Number> parse_hex(std::string_view text) {
    Number value = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || at != text.data() + text.size()) return std::nullopt;
    return value;
}

// Eight digits each for words in the machine's order, as /proc/net/tcp and tcp6 write addresses.
std::optional<uint128> parse_words(std::string_view text) {
    if (text.size() != 8 && text.size() != 32) return std::nullopt;
    uint128 address = 0;
    for (std::size_t at = 0; at < text.size(); at += 8) {
        const auto word = parse_hex<std::uint32_t>(text.substr(at, 8));
        if (!word) return std::nullopt;
        address = address << 32 | ntohl(*word);
    }
    return text.size() == 8 ? of_ipv4(static_cast<std::uint32_t>(address)) : address;
}

// What cannot be read is empty: a host need not have each of these files.
std::string content_of(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void append(std::vector<HostAddress>& to, std::vector<HostAddress> from) {
    for (HostAddress& address : from)
        if (address.address != 0 && !is_loopback(address.address)) to.push_back(std::move(address));
}

Result<std::vector<OwnAddress>> own_addresses() {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0)
        return kernel_refused("asking for this host's addresses: " + errno_text(errno));
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
    std::vector<OwnAddress> found;
    for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
        if (entry->ifa_addr->sa_family == AF_INET) {
            sockaddr_in address{};
            std::memcpy(&address, entry->ifa_addr, sizeof(address));
            found.push_back({of_ipv4(ntohl(address.sin_addr.s_addr)), entry->ifa_name});
        } else if (entry->ifa_addr->sa_family == AF_INET6) {
            sockaddr_in6 address{};
            std::memcpy(&address, entry->ifa_addr, sizeof(address));
            uint128 number = 0;
            for (const std::uint8_t byte : address.sin6_addr.s6_addr) number = number << 8 | byte;
            found.push_back({number, entry->ifa_name});
        }
    }
    return found;
}

// The interface with that address; empty if there is none.
std::string interface_of(uint128 address, const std::vector<OwnAddress>& own) {
    for (const OwnAddress& one : own)
        if (one.address == address) return one.interface;
    return {};
}

std::vector<HostAddress> own_session(const std::vector<OwnAddress>& own) {
    const char* connection = std::getenv("SSH_CONNECTION"); // NOLINT(concurrency-mt-unsafe)
    if (connection == nullptr) return {};
    const std::vector<std::string> words = words_of(connection);
    if (words.empty()) return {};
    const std::optional<uint128> address = parse_address(words.front());
    if (!address) return {};
    // Client address and port, server address and port.
    const std::optional<uint128> local = words.size() > 2 ? parse_address(words[2]) : std::nullopt;
    return {{*address, "where this session comes from (SSH_CONNECTION)",
             local ? interface_of(*local, own) : std::string()}};
}

} // namespace

std::vector<HostAddress> gateways_of_ipv4_routes(std::string_view text) {
    std::vector<HostAddress> found;
    // Iface Destination Gateway ...
    each_line(text, [&](const std::vector<std::string>& words) {
        if (words.size() < 3) return;
        if (const auto gateway = parse_words(words[2]); gateway && *gateway != all_ipv4.first)
            found.push_back({*gateway, fmt::format("a gateway of {}", printable(words[0]))});
    });
    return found;
}

std::vector<HostAddress> gateways_of_ipv6_routes(std::string_view text) {
    std::vector<HostAddress> found;
    // destination length source length gateway metric references use flags interface
    each_line(text, [&](const std::vector<std::string>& words) {
        if (words.size() < 10 || words[4].size() != 32) return;
        const auto upper = parse_hex<std::uint64_t>(std::string_view(words[4]).substr(0, 16));
        const auto lower = parse_hex<std::uint64_t>(std::string_view(words[4]).substr(16));
        if (upper && lower && (*upper | *lower) != 0)
            found.push_back(
                {address_number(*upper, *lower), fmt::format("a gateway of {}", printable(words[9]))});
    });
    return found;
}

std::vector<HostAddress> resolvers_of(std::string_view text) {
    std::vector<HostAddress> found;
    each_line(text, [&](const std::vector<std::string>& words) {
        if (words.size() < 2 || words[0] != "nameserver") return;
        if (const auto address = parse_address(words[1]))
            found.push_back({*address, "this host's resolver (/etc/resolv.conf)"});
    });
    return found;
}

std::vector<HostAddress> administrators_of(std::string_view text, const std::vector<OwnAddress>& own) {
    constexpr std::string_view established = "01";
    std::vector<HostAddress> found;
    // number: local remote state ...
    each_line(text, [&](const std::vector<std::string>& words) {
        if (words.size() < 4 || words[3] != established) return;
        const std::string_view local = words[1];
        const std::string_view remote = words[2];
        const std::size_t colon = local.find(':');
        if (colon == std::string_view::npos || parse_hex<std::uint32_t>(local.substr(colon + 1)) != ssh_port)
            return;
        if (const auto address = parse_words(remote.substr(0, remote.find(':'))))
            found.push_back({*address, "an administrator's session (TCP port 22)",
                             interface_of(parse_words(local.substr(0, colon)).value_or(0), own)});
    });
    return found;
}

Result<std::vector<HostAddress>> RealHostAddresses::read() {
    std::vector<HostAddress> all;
    SIEVE_ASSIGN(const std::vector<OwnAddress> own, own_addresses());
    for (const OwnAddress& one : own)
        append(all, {{one.address, fmt::format("this host's own address on {}", printable(one.interface))}});
    append(all, gateways_of_ipv4_routes(content_of("/proc/self/net/route")));
    append(all, gateways_of_ipv6_routes(content_of("/proc/self/net/ipv6_route")));
    append(all, resolvers_of(content_of("/etc/resolv.conf")));
    append(all, administrators_of(content_of("/proc/self/net/tcp"), own));
    append(all, administrators_of(content_of("/proc/self/net/tcp6"), own));
    append(all, own_session(own));
    return all;
}

} // namespace sieve::service
