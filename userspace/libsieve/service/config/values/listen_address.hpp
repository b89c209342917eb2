// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where the daemon listens for scrapes and browsers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sieve::service {

struct ListenAddress {
    std::string address; // of IPv4, or of IPv6 without brackets
    std::uint16_t port = 0;

    [[nodiscard]] friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// "127.0.0.1:19273" or "[::1]:19273", with a port from 1 to 65535; nothing for any other text.
[[nodiscard]] std::optional<ListenAddress> parse_listen_address(std::string_view text);

} // namespace sieve::service
