// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_access.hpp"

#include <optional>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/download/url.hpp"

namespace sieve::service {

namespace {

constexpr const char* username = "a user name without a colon";
constexpr const char* password_file = "a file with the user's password";

const ConfigurationKeys<ProxyAccess>& proxy_keys() {
    static const ConfigurationKeys<ProxyAccess> keys = {
        {"proxy", "URL",
         "an HTTP proxy; an empty text means none, and the environment (`http_proxy`) is not consulted",
         [](Section& section, const KeyContext&, ProxyAccess& into) {
             if (std::optional<std::string> url = section.text("proxy", "the URL of a proxy"))
                 into = {.url = std::move(*url)};
         },
         [](TomlText& text, const ProxyAccess& proxy) { text.word("proxy", proxy.url); }},
        text_key("proxy-username", "name", "the user that the proxy wants", username, &ProxyAccess::username),
        path_key("proxy-password-file", "a file with the password of that user in one line", password_file,
                 &ProxyAccess::password_file),
    };
    return keys;
}

} // namespace

void read_path(Section& section, const std::filesystem::path& folder, std::string_view name,
               std::string_view what, std::string& into) {
    const std::optional<std::string> text = section.text(name, what);
    if (!text) return;
    if (text->find('\0') != std::string::npos) section.expected(*section.find(name), name, what);
    into = text->empty() ? std::string() : (folder / *text).lexically_normal().string();
}

void expected_url(Section& section, const toml::node& node, std::string_view name, std::string_view what) {
    const bool hides = node.is_string() && node.ref<std::string>().find('@') != std::string::npos;
    if (!hides) return section.expected(node, name, what);
    section.mistake(node, name, fmt::format("expected {}, found something else with a user", what));
}

void read_url(Section& section, std::string_view name, std::string& into) {
    const std::optional<std::string> text = section.text(name, url_form);
    if (!text) return;
    if (text->find('\0') != std::string::npos || !check_url(*text))
        expected_url(section, *section.find(name), name);
    into = *text;
}

const ConfigurationKeys<ServerAccess>& server_access_keys() {
    static const ConfigurationKeys<ServerAccess> keys = {
        path_key("certificates", "the authorities to trust (PEM), if they are not those of the system",
                 "a file with certificates (PEM) of the authorities to trust", &ServerAccess::certificates),
        path_key("client-certificate", "the certificate of this host (PEM); its file may hold the key, too",
                 "a file with our certificate (PEM)", &ServerAccess::client_certificate),
        path_key("client-key", "the key of that certificate (PEM), without a passphrase",
                 "a file with the certificate's key (PEM)", &ServerAccess::client_key),
    };
    return keys;
}

const ConfigurationKeys<HttpAccess>& way_keys() {
    static const ConfigurationKeys<HttpAccess> keys = joined<HttpAccess>({
        keys_of_part(&HttpAccess::proxy, proxy_keys()),
        {text_key("user-agent", "name",
                  "how the service calls itself, for servers that refuse names that they do not know; "
                  "`xdp-sieve/VERSION` if empty",
                  "a name, such as \"Mozilla/5.0\"", &HttpAccess::user_agent)},
    });
    return keys;
}

const ConfigurationKeys<HttpAccess>& http_access_keys() {
    static const ConfigurationKeys<HttpAccess> keys = joined<HttpAccess>({
        keys_of_part(&HttpAccess::server, server_access_keys()),
        {path_key("header-file",
                  "lines `NAME: VALUE` for the header of the request, such as `Authorization: Bearer ...` or "
                  "`X-Api-Key: ...`",
                  "a file with lines `NAME: VALUE`", &HttpAccess::header_file),
         text_key("username", "name", "the user of HTTP basic authentication", username,
                  &HttpAccess::username),
         path_key("password-file", "a file with the password of that user in one line", password_file,
                  &HttpAccess::password_file)},
        way_keys(),
    });
    return keys;
}

} // namespace sieve::service
