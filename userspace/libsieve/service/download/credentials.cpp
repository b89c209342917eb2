// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/credentials.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "libsieve/util/files/secret_file.hpp"
#include "libsieve/util/system/small_file.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

constexpr std::size_t longest_pem = std::size_t{1} << 20; // an authority bundle has some 200 KB
constexpr std::size_t longest_headers = std::size_t{32} << 10;
constexpr const char* authorities = "certificates (PEM) of the authorities to trust";
constexpr const char* key = "a key (PEM) without a passphrase";
constexpr const char* password = "a password in one line";

bool is_pem(const std::string& text) {
    return text.find("-----BEGIN") != std::string::npos;
}

Result<std::string> read_certificates(const std::string& path, const char* what) {
    SIEVE_ASSIGN(std::optional<std::string> text, read_small_file(path, longest_pem));
    if (!text)
        return bad_input(
            fmt::format("{}: cannot be read: {}, expected {}", printable(path), errno_text(ENOENT), what));
    if (!is_pem(*text)) return bad_input(fmt::format("{}: expected {}", printable(path), what));
    return std::move(*text);
}

// libcurl would ask whoever sits at the terminal for a passphrase.
Result<std::string> read_key(const std::string& path) {
    SIEVE_ASSIGN(std::string text, read_secret_file(path, key, longest_pem));
    if (text.find("PRIVATE KEY-----") == std::string::npos || text.find("ENCRYPTED") != std::string::npos)
        return bad_input(fmt::format("{}: expected {}", printable(path), key));
    return text;
}

bool is_token(std::string_view name) {
    constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    return !name.empty() && name.find_first_not_of(allowed) == std::string_view::npos;
}
// libcurl takes a line without a value as an order to leave the header out.
bool is_header(std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return false;
    const std::string_view value = line.substr(colon + 1);
    return value.find_first_not_of(" \t") != std::string_view::npos &&
           std::ranges::none_of(value, [](char c) { return is_control(c) && c != '\t'; });
}

Result<std::vector<std::string>> read_headers(const std::string& path) {
    const std::string what = "lines `NAME: VALUE` of a request's header";
    SIEVE_ASSIGN(const std::string text, read_secret_file(path, what, longest_headers));
    std::vector<std::string> headers;
    std::size_t number = 0;
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        number++;
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) continue;
        if (!is_header(line)) // which may be a secret
            return bad_input(fmt::format("{}:{}: expected {}", printable(path), number, what));
        headers.emplace_back(line);
    }
    if (headers.empty()) return bad_input(fmt::format("{}: empty, expected {}", printable(path), what));
    return headers;
}

} // namespace

Result<ServerSecrets> read_server_secrets(const ServerAccess& access) {
    ServerSecrets secrets;
    if (!access.certificates.empty()) {
        SIEVE_ASSIGN(secrets.authorities, read_certificates(access.certificates, authorities));
    }
    if (access.client_certificate.empty()) return secrets;
    SIEVE_ASSIGN(secrets.certificate, read_certificates(access.client_certificate, "our certificate (PEM)"));
    SIEVE_ASSIGN(secrets.key,
                 read_key(access.client_key.empty() ? access.client_certificate : access.client_key));
    return secrets;
}

Result<Credentials> read_credentials(const HttpAccess& access) {
    Credentials credentials;
    SIEVE_ASSIGN(credentials.server, read_server_secrets(access.server));
    if (!access.header_file.empty()) {
        SIEVE_ASSIGN(credentials.headers, read_headers(access.header_file));
    }
    credentials.username = access.username;
    if (!access.password_file.empty()) {
        SIEVE_ASSIGN(credentials.password, read_secret_line(access.password_file, password));
    }
    if (!access.proxy.password_file.empty()) {
        SIEVE_ASSIGN(credentials.proxy_password,
                     read_secret_line(access.proxy.password_file, "the proxy's password in one line"));
    }
    return credentials;
}

} // namespace sieve::service
