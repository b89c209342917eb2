// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_access.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/service/download/url.hpp"

namespace sieve::service {

namespace {

void read_word(Section& section, std::string_view name, std::string_view what, std::string& into) {
    if (std::optional<std::string> text = section.text(name, what)) into = std::move(*text);
}

// A user name and the file of the password.
void read_user(Section& section, const std::filesystem::path& folder, const std::string& prefix,
               std::string& username, std::string& password_file) {
    read_word(section, prefix + "username", "a user name without a colon", username);
    read_path(section, folder, prefix + "password-file", "a file with the user's password", password_file);
}

void read_proxy(Section& section, const std::filesystem::path& folder, ProxyAccess& into) {
    if (std::optional<std::string> url = section.text("proxy", "the URL of a proxy"))
        into = {.url = std::move(*url)};
    read_user(section, folder, "proxy-", into.username, into.password_file);
}

void read_way_keys(Section& section, const std::filesystem::path& folder, HttpAccess& into) {
    read_proxy(section, folder, into.proxy);
    read_word(section, "user-agent", "a name, such as \"Mozilla/5.0\"", into.user_agent);
}

void read_server_keys(Section& section, const std::filesystem::path& folder, ServerAccess& into) {
    read_path(section, folder, "certificates", "a file with certificates (PEM) of the authorities to trust",
              into.certificates);
    read_path(section, folder, "client-certificate", "a file with our certificate (PEM)",
              into.client_certificate);
    read_path(section, folder, "client-key", "a file with the certificate's key (PEM)", into.client_key);
}

// What comes from another table was judged there.
void note(Section& section, const std::vector<AccessMistake>& mistakes) {
    for (const AccessMistake& mistake : mistakes)
        if (const toml::node* node = section.find(mistake.key))
            section.mistake(*node, mistake.key, mistake.message);
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

void read_server_access(Section& section, const std::filesystem::path& folder, ServerAccess& into) {
    read_server_keys(section, folder, into);
    note(section, mistakes_of(into));
}

void read_way(Section& section, const std::filesystem::path& folder, HttpAccess& into) {
    read_way_keys(section, folder, into);
    note(section, mistakes_of(into));
}

void read_http_access(Section& section, const std::filesystem::path& folder, HttpAccess& into) {
    read_server_keys(section, folder, into.server);
    read_path(section, folder, "header-file", "a file with lines `NAME: VALUE`", into.header_file);
    read_user(section, folder, "", into.username, into.password_file);
    read_way_keys(section, folder, into);
    note(section, mistakes_of(into));
}

} // namespace sieve::service
