// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lists by http and https, and what a server is told.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <tl/expected.hpp>

#include "libsieve/service/download/credentials.hpp"
#include "libsieve/service/download/http_access.hpp"
#include "libsieve/service/download/sandbox_limits.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

struct HttpRequest {
    std::string url;
    HttpAccess access;
    // Of the content that is there already. With one of them the server may answer that it is unchanged.
    std::string etag;
    std::string last_modified;
    std::string post{}; // what is sent, JSON; empty: nothing is, and the content is asked for
    SandboxLimits limits;
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
// limits.redirects of them. Credentials, those in the URL as well, go to the scheme, host and port of the
// URL, and nowhere else. Whatever is no complete answer of status 200, 304 if it was asked for, or 201 if
// something was sent, is a failure; `to` holds anything then. libcurl's global state must be initialised.
// `progress` is called at least once a second, with share 0 as long as nobody knows how much there is.
[[nodiscard]] tl::expected<HttpAnswer, HttpFailure>
fetch_http(const HttpRequest& request, const Credentials& credentials, int to, const Progress& progress = {});

} // namespace sieve::service
