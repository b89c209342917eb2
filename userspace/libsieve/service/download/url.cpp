// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/url.hpp"

#include <curl/curl.h>

#include <memory>

#include <fmt/core.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

struct UrlParts {
    std::unique_ptr<CURLU, decltype(&::curl_url_cleanup)> url{::curl_url(), &::curl_url_cleanup};

    [[nodiscard]] bool parse(const std::string& text) const {
        return url && ::curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) == CURLUE_OK;
    }
    // Empty: it has none.
    [[nodiscard]] std::string part(CURLUPart which, unsigned flags = 0) const {
        char* text = nullptr;
        if (::curl_url_get(url.get(), which, &text, flags) != CURLUE_OK) return {};
        const std::unique_ptr<char, decltype(&::curl_free)> owner(text, &::curl_free);
        return text;
    }
    void clear(CURLUPart which) const { ::curl_url_set(url.get(), which, nullptr, 0); }
};

} // namespace

std::string displayed_url(const std::string& url) {
    const UrlParts parts;
    // Not parsed, not shown: it may hold a password anywhere.
    if (!parts.parse(url)) return "a URL that cannot be understood";
    const bool query = !parts.part(CURLUPART_QUERY).empty();
    for (const CURLUPart part :
         {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_QUERY, CURLUPART_FRAGMENT})
        parts.clear(part);
    return printable(parts.part(CURLUPART_URL)) + (query ? "?..." : "");
}

std::string server_of(const std::string& url) {
    const UrlParts parts;
    if (!parts.parse(url)) return {};
    std::string server = fmt::format("{}://{}:{}", parts.part(CURLUPART_SCHEME), parts.part(CURLUPART_HOST),
                                     parts.part(CURLUPART_PORT, CURLU_DEFAULT_PORT));
    for (char& letter : server)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return server;
}

UrlUser take_user(std::string& url) {
    const UrlParts parts;
    if (!parts.parse(url)) return {};
    UrlUser user{parts.part(CURLUPART_USER, CURLU_URLDECODE),
                 parts.part(CURLUPART_PASSWORD, CURLU_URLDECODE)};
    if (user.name.empty() && user.password.empty()) return user;
    parts.clear(CURLUPART_USER);
    parts.clear(CURLUPART_PASSWORD);
    url = parts.part(CURLUPART_URL);
    return user;
}

Status check_url(const std::string& url) {
    const UrlParts parts;
    const bool fits = parts.parse(url) && !parts.part(CURLUPART_HOST).empty();
    const std::string scheme = fits ? parts.part(CURLUPART_SCHEME) : std::string();
    if (scheme == "http" || scheme == "https") return {};
    return bad_input(fmt::format("{}: expected an http or https URL with a host", displayed_url(url)));
}

} // namespace sieve::service
