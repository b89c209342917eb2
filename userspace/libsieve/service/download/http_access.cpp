// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/http_access.hpp"

#include <string_view>

#include <fmt/core.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

using AccessMistakes = std::vector<AccessMistake>;

void add_expected(AccessMistakes& mistakes, std::string key, std::string_view what, std::string_view found) {
    mistakes.push_back(
        {std::move(key), fmt::format("expected {}, found \"{}\"", what, printable(found, 64))});
}

void check_user(AccessMistakes& mistakes, const std::string& prefix, const std::string& username,
                const std::string& password_file) {
    const std::string name = prefix + "username";
    const std::string file = prefix + "password-file";
    // Basic authentication ends a name at its first colon.
    if (has_control(username) || username.find(':') != std::string::npos)
        add_expected(mistakes, name, "a user name without a colon", username);
    if (username.empty() != password_file.empty())
        mistakes.push_back({username.empty() ? file : name,
                            fmt::format("expected {} and {} together, or neither", name, file)});
}

void check_proxy(AccessMistakes& mistakes, const ProxyAccess& proxy) {
    if (proxy.url.find('@') != std::string::npos)
        mistakes.push_back(
            {"proxy", "a user in the URL; expected proxy-username and proxy-password-file beside it"});
    else if (!proxy.url.empty() && (has_control(proxy.url) || proxy.url.find("://") == std::string::npos))
        add_expected(mistakes, "proxy", "the URL of a proxy, such as \"http://proxy.example:3128\"",
                     proxy.url);
    check_user(mistakes, "proxy-", proxy.username, proxy.password_file);
    if (proxy.url.empty() && !proxy.username.empty())
        mistakes.push_back({"proxy-username", "proxy-username without proxy"});
}

} // namespace

std::vector<AccessMistake> mistakes_of(const ServerAccess& access) {
    if (!access.client_certificate.empty() || access.client_key.empty()) return {};
    return {{"client-key", "there is no client-certificate"}};
}

std::vector<AccessMistake> mistakes_of(const HttpAccess& access) {
    AccessMistakes mistakes = mistakes_of(access.server);
    check_user(mistakes, "", access.username, access.password_file);
    check_proxy(mistakes, access.proxy);
    if (has_control(access.user_agent))
        add_expected(mistakes, "user-agent", "a name, such as \"Mozilla/5.0\"", access.user_agent);
    return mistakes;
}

} // namespace sieve::service
