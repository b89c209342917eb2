// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// URLs of lists: whether one can work, and what of it may be shown.
#pragma once

#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// For messages and files: the URL without user, password and fragment; a query, which may hold a key, is
// "?...".
[[nodiscard]] std::string displayed_url(const std::string& url);

// What credentials are for: "https://lists.example:443". Empty: it is no URL.
[[nodiscard]] std::string server_of(const std::string& url);

// Takes user and password out of the URL.
struct UrlUser {
    std::string name; // empty: it has none
    std::string password;
};
[[nodiscard]] UrlUser take_user(std::string& url);

// bad_input unless it is an http or https URL with a host.
[[nodiscard]] Status check_url(const std::string& url);

} // namespace sieve::service
