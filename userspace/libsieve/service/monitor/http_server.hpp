// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A small HTTP server that only answers questions: GET and HEAD, one request a connection, one thread.
//
// Nobody can keep others from being answered: a connection ends after `patience`, whatever it sends or does
// not read; when there are too many, the oldest ends; a connection has `connection_memory` for what it sends.
// On a loopback address, a request must name a local host. Otherwise a web page could have a browser on this
// machine read the answers under a name of its own (DNS rebinding).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libsieve/util/results/result.hpp"

namespace sieve::service::watching {

struct HttpSettings {
    std::string listen = "127.0.0.1:19273"; // ADDRESS:PORT or [ADDRESS]:PORT
    std::chrono::milliseconds patience{5000};
    unsigned connections = 64;
    std::size_t connection_memory = 16384;
    std::chrono::milliseconds tick_every{0}; // 0: never
};

struct HttpResponse {
    unsigned status = 200;
    std::string type = "text/plain; charset=utf-8";
    std::string body{};
    std::string policy = "default-src 'none'"; // Content-Security-Policy
};

class HttpServer {
  public:
    // Answers for a path such as "/metrics". Called in the server's thread, as `tick` is.
    using Answer = std::function<HttpResponse(std::string_view path)>;

    // Errors: invalid_request for an address that is none; kernel_refused if it cannot be listened on.
    [[nodiscard]] static Result<HttpServer> start(const HttpSettings& settings, Answer answer,
                                                  std::function<void()> tick = {});
    HttpServer(HttpServer&&) noexcept;
    HttpServer& operator=(HttpServer&&) noexcept;
    ~HttpServer(); // stops it

    // Where it listens, such as "127.0.0.1:19273".
    [[nodiscard]] const std::string& address() const;

  private:
    class Loop;
    explicit HttpServer(std::unique_ptr<Loop> loop);
    std::unique_ptr<Loop> loop_;
};

// Whether a Host header names this machine by a loopback address or as localhost, with any port.
[[nodiscard]] bool is_local_host(std::string_view host);

} // namespace sieve::service::watching
