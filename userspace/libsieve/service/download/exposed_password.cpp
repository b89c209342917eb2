// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/exposed_password.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <fmt/core.h>

#include "libsieve/service/download/url.hpp"

namespace sieve::service {

namespace {

// "http://lists.example:80" leads to "lists.example".
std::string host_of(const std::string& server) {
    const std::size_t begin = server.find("://") + 3;
    return server.substr(begin, server.rfind(':') - begin);
}

bool is_this_host(const std::string& host) {
    in_addr address{};
    return host == "localhost" || host.ends_with(".localhost") || host == "[::1]" ||
           (host.starts_with("127.") && ::inet_pton(AF_INET, host.c_str(), &address) == 1);
}

std::string sentence(const std::string& url, const std::string& what) {
    return fmt::format("{}: {} goes over plain http, and anyone on the way can read it; https hides it",
                       displayed_url(url), what);
}

// Whether a request of this URL can be read on its way: it does not go by https, and not to this host itself.
bool can_be_read(const std::string& url) {
    std::string server = server_of(url);
    // Of a proxy there are schemes that libcurl's URLs do not know.
    if (const std::size_t scheme = url.find("://"); server.empty() && scheme != std::string::npos)
        server = server_of("http" + url.substr(scheme));
    return !server.empty() && !server.starts_with("https://") && !is_this_host(host_of(server));
}

} // namespace

std::vector<std::string> exposed_passwords(const std::string& url, const HttpAccess& access,
                                           const std::string& what) {
    std::vector<std::string> sentences;
    if (can_be_read(url)) {
        std::string rest = url;
        const bool has_user = !access.username.empty() || !take_user(rest).name.empty();
        if (has_user) sentences.push_back(sentence(url, "the password"));
        if (!access.header_file.empty()) sentences.push_back(sentence(url, "what header-file holds"));
        if (!what.empty()) sentences.push_back(sentence(url, what));
    }
    if (!access.proxy.username.empty() && can_be_read(access.proxy.url))
        sentences.push_back(fmt::format("proxy of {}: its password goes over plain http, and anyone on the "
                                        "way can read it",
                                        displayed_url(url)));
    return sentences;
}

} // namespace sieve::service
