// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lists by http and https.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "libsieve/service/download/sandbox_limits.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::service {

struct HttpRequest {
    std::string url;
    std::string certificates; // authorities to trust (PEM); empty: the system's
    std::string proxy;        // URL of a proxy; empty: none, whatever the environment says
    // Of the content that is there already. With one of them the server may answer that it is unchanged.
    std::string etag;
    std::string last_modified;
    SandboxLimits limits;
    // Further lines of the request's header. They may hold a key: with redirects, they go wherever those
    // lead.
    std::vector<std::string> headers{};
};

struct HttpAnswer {
    bool unchanged = false; // the server has nothing newer; nothing was written
    std::string etag;       // as the server wrote them; empty: none
    std::string last_modified;
    std::uint64_t bytes = 0;
};

struct HttpFailure {
    std::string message;                             // one sentence that names the URL
    std::optional<std::chrono::seconds> retry_after; // when the server wants to be asked again
    long status = 0;                                 // of the answer; 0: there was none
};

// Downloads, and writes the body as it comes to `to`, an empty file. Redirects lead to https only, at most
// limits.redirects of them. Whatever is no complete answer of status 200, or 304 if it was asked for, is a
// failure; `to` holds anything then. libcurl's global state must be initialised.
[[nodiscard]] tl::expected<HttpAnswer, HttpFailure> fetch_http(const HttpRequest& request, int to);

} // namespace sieve::service
