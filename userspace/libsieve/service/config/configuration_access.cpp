// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_access.hpp"

#include <optional>

#include <fmt/core.h>

#include "libsieve/service/download/url.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

// A text that fits; `what` names it.
void read_word(Section& section, std::string_view name, std::string_view what,
               bool (*fits)(const std::string& text), std::string& into) {
    const std::optional<std::string> text = section.text(name, what);
    if (!text) return;
    if (has_control(*text) || !fits(*text)) section.expected(*section.find(name), name, what);
    into = *text;
}

// Basic authentication ends a name at its first colon.
bool is_username(const std::string& text) {
    return text.find(':') == std::string::npos;
}
bool is_any(const std::string&) {
    return true;
}

// A user name and the file of the password.
void read_user(Section& section, const std::filesystem::path& folder, const std::string& prefix,
               std::string& username, std::string& password_file) {
    const std::string name = prefix + "username";
    const std::string file = prefix + "password-file";
    read_word(section, name, "a user name without a colon", is_username, username);
    read_path(section, folder, file, "a file with the user's password", password_file);
    if (username.empty() != password_file.empty())
        section.mistake(fmt::format("expected {} and {} together, or neither", name, file));
}

void read_proxy(Section& section, const std::filesystem::path& folder, ProxyAccess& into) {
    constexpr std::string_view what = "the URL of a proxy, such as \"http://proxy.example:3128\"";
    const std::optional<std::string> text = section.text("proxy", what);
    if (text) {
        const toml::node& node = *section.find("proxy");
        into = {.url = *text};
        if (text->find('@') != std::string::npos)
            section.mistake(node, "proxy",
                            "a user in the URL; expected proxy-username and proxy-password-file beside it");
        else if (has_control(*text) || (!text->empty() && text->find("://") == std::string::npos))
            section.expected(node, "proxy", what);
    }
    read_user(section, folder, "proxy-", into.username, into.password_file);
    if (into.url.empty() && !into.username.empty()) section.mistake("proxy-username without proxy");
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
    read_path(section, folder, "certificates", "a file with certificates (PEM) of the authorities to trust",
              into.certificates);
    read_path(section, folder, "client-certificate", "a file with our certificate (PEM)",
              into.client_certificate);
    read_path(section, folder, "client-key", "a file with the certificate's key (PEM)", into.client_key);
    if (into.client_certificate.empty() && !into.client_key.empty())
        section.mistake(*section.find("client-key"), "client-key", "there is no client-certificate");
}

void read_way(Section& section, const std::filesystem::path& folder, HttpAccess& into) {
    read_proxy(section, folder, into.proxy);
    read_word(section, "user-agent", "a name, such as \"Mozilla/5.0\"", is_any, into.user_agent);
}

void read_http_access(Section& section, const std::filesystem::path& folder, HttpAccess& into) {
    read_server_access(section, folder, into.server);
    read_path(section, folder, "header-file", "a file with lines `NAME: VALUE`", into.header_file);
    read_user(section, folder, "", into.username, into.password_file);
    read_way(section, folder, into);
}

} // namespace sieve::service
