// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/values/listen_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>

namespace sieve::service {

std::optional<ListenAddress> parse_listen_address(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string_view digits = text.substr(colon + 1);
    std::string_view address = text.substr(0, colon);
    const bool bracketed = address.size() > 2 && address.front() == '[' && address.back() == ']';
    if (bracketed) address = address.substr(1, address.size() - 2);
    ListenAddress parsed{std::string(address), 0};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed.port);
    if (error != std::errc() || end != digits.data() + digits.size() || parsed.port == 0) return std::nullopt;
    // A null byte would end the text before its end.
    in6_addr binary{};
    if (address.find('\0') != std::string_view::npos ||
        ::inet_pton(bracketed ? AF_INET6 : AF_INET, parsed.address.c_str(), &binary) != 1)
        return std::nullopt;
    return parsed;
}

} // namespace sieve::service
