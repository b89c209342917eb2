// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How a server knows us, and we know it, as an operator says it: the names of files, and no secret.
// credentials.hpp reads the files.
#pragma once

#include <string>
#include <vector>

namespace sieve::service {

// All are files (PEM).
struct ServerAccess {
    std::string certificates{};       // of the authorities to trust; empty: the system's
    std::string client_certificate{}; // our own; empty: none
    std::string client_key{};         // its key; empty: the certificate's file holds it

    [[nodiscard]] friend bool operator==(const ServerAccess&, const ServerAccess&) = default;
};

struct ProxyAccess {
    std::string url{};           // empty: no proxy, whatever the environment says
    std::string username{};      // empty: it asks for none
    std::string password_file{}; // holds one line; empty if there is no user name

    [[nodiscard]] friend bool operator==(const ProxyAccess&, const ProxyAccess&) = default;
};

struct HttpAccess {
    ServerAccess server{};
    std::string header_file{};   // holds lines "NAME: VALUE" of the request; empty: none
    std::string username{};      // for basic authentication; empty: none
    std::string password_file{}; // holds one line; empty if there is no user name
    ProxyAccess proxy{};
    std::string user_agent{}; // how we call ourselves; empty: "xdp-sieve/VERSION"

    [[nodiscard]] friend bool operator==(const HttpAccess&, const HttpAccess&) = default;
};

// What cannot be. `key` is how the configuration and the command line call it, and one that was given.
struct AccessMistake {
    std::string key;
    std::string message; // says what was expected, and shows no password
};
[[nodiscard]] std::vector<AccessMistake> mistakes_of(const ServerAccess& access);
[[nodiscard]] std::vector<AccessMistake> mistakes_of(const HttpAccess& access);

} // namespace sieve::service
