// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The keys that say how a server is asked: files, users and proxies. Every table of a server has them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "libsieve/service/config/configuration_section.hpp"
#include "libsieve/service/download/http_access.hpp"

namespace sieve::service {

// A path; empty if the text is. One that is not absolute starts from `folder`.
void read_path(Section& section, const std::filesystem::path& folder, std::string_view name,
               std::string_view what, std::string& into);

// An http or https URL with a host. What a mistake shows of it has no password.
void read_url(Section& section, std::string_view name, std::string& into);
inline constexpr std::string_view url_form = "an http or https URL with a host";
void expected_url(Section& section, const toml::node& node, std::string_view name,
                  std::string_view what = url_form);

// `certificates`, `client-certificate` and `client-key`.
void read_server_access(Section& section, const std::filesystem::path& folder, ServerAccess& into);

// `proxy` with its user, and `user-agent`. A proxy takes the place of another one, user and all.
void read_way(Section& section, const std::filesystem::path& folder, HttpAccess& into);

// All keys of HttpAccess.
void read_http_access(Section& section, const std::filesystem::path& folder, HttpAccess& into);

} // namespace sieve::service
