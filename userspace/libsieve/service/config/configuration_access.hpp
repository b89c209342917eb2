// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The keys that say how a server is asked: files, users and proxies. Every table of a server has them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "libsieve/service/config/configuration_keys.hpp"
#include "libsieve/service/download/http_access.hpp"

namespace sieve::service {

// A path; empty if the text is. One that is not absolute starts from `folder`.
void read_path(Section& section, const std::filesystem::path& folder, std::string_view name,
               std::string_view what, std::string& into);

template <class Table>
[[nodiscard]] ConfigurationKey<Table> path_key(const char* name, const char* help, const char* what,
                                               std::string Table::*member) {
    return {name, "file", help,
            [=](Section& section, const KeyContext& context, Table& into) {
                read_path(section, context.folder, name, what, into.*member);
            },
            [=](TomlText& text, const Table& table) { text.word(name, table.*member); }};
}

// An http or https URL with a host. What a mistake shows of it has no password.
void read_url(Section& section, std::string_view name, std::string& into);
inline constexpr std::string_view url_form = "an http or https URL with a host";
void expected_url(Section& section, const toml::node& node, std::string_view name,
                  std::string_view what = url_form);

template <class Table>
[[nodiscard]] ConfigurationKey<Table> url_key(const char* name, const char* help,
                                              std::string Table::*member) {
    return {name, "URL", help,
            [=](Section& section, const KeyContext&, Table& into) { read_url(section, name, into.*member); },
            [=](TomlText& text, const Table& table) { text.word(name, table.*member); }};
}

// `certificates`, `client-certificate` and `client-key`.
[[nodiscard]] const ConfigurationKeys<ServerAccess>& server_access_keys();

// `proxy` with its user, and `user-agent`. A proxy takes the place of another one, user and all.
[[nodiscard]] const ConfigurationKeys<HttpAccess>& way_keys();

// All keys of HttpAccess.
[[nodiscard]] const ConfigurationKeys<HttpAccess>& http_access_keys();

// Notes how the keys do not go together. What comes from another table was judged there.
template <class Access>
void check_access(Section& section, const Access& access) {
    for (const AccessMistake& mistake : mistakes_of(access))
        if (const toml::node* node = section.find(mistake.key))
            section.mistake(*node, mistake.key, mistake.message);
}

} // namespace sieve::service
