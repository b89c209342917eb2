// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a server and a proxy get from us: the content of the files that an operator names. Whoever holds it
// tells nobody. The files are read for each request, so that a new password is used at once.
#pragma once

#include <string>
#include <vector>

#include "libsieve/service/download/http_access.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// PEM texts.
struct ServerSecrets {
    std::string authorities{}; // those to trust; empty: the system's
    std::string certificate{}; // our own; empty: none
    std::string key{};         // its key
};

struct Credentials {
    ServerSecrets server{};
    std::vector<std::string> headers{}; // "NAME: VALUE"
    std::string username{};             // empty: none
    std::string password{};
    std::string proxy_password{};
};

// Errors name the file and what was expected. bad_input for a file that is not there or not what it should
// be, and for one with a secret that others may read or write (util/files/secret_file.hpp).
[[nodiscard]] Result<ServerSecrets> read_server_secrets(const ServerAccess& access);
[[nodiscard]] Result<Credentials> read_credentials(const HttpAccess& access);

} // namespace sieve::service
