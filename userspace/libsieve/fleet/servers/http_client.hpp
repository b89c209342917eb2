// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One HTTP exchange at a time with etcd or an object store, by libcurl. Connections are kept for the next
// exchange. libcurl's global state must be initialised before a second thread starts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/download/credentials.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

// How a server knows us, and we know it.
struct HttpCredentials {
    service::ServerSecrets server{}; // texts, not files: a child that uses them may not open the files
    std::string user{};              // empty: none. With `region` the access key
    std::string password{};          // with `region` the secret key
    std::string region{};            // of S3: requests are signed (AWS Signature Version 4); empty: not
};

struct HttpCall {
    std::string method = "GET"; // GET, HEAD, POST or PUT
    std::string url{};
    std::vector<std::string> headers{}; // "NAME: VALUE"
    std::string body{};                 // of POST
    int upload = -1;                    // of PUT: a regular file, sent from its beginning
    std::uint64_t upload_bytes = 0;
    std::uint64_t from = 0; // of GET: the first byte wanted
    // The whole exchange; 0: as long as the server and its connection live.
    std::chrono::milliseconds timeout{std::chrono::seconds(10)};
    // An exchange that is slower than 1 byte per second for so long fails; 0: it may be silent.
    std::chrono::seconds silence{0};
    std::uint64_t rate = 0;                             // bytes per second at most, either way; 0: no limit
    std::uint64_t most_bytes = std::uint64_t{16} << 20; // of the answer
    // Gets the answer's body as it comes, if its status is 200 or 206; false gives up. Empty: the body goes
    // to HttpReply::body.
    std::function<bool(long status, std::string_view bytes)> take{};
};

struct HttpReply {
    long status = 0;
    std::string body{};
    std::string content_range{};
    std::uint64_t length = 0; // as the server declared it
};

class HttpClient {
  public:
    // `cancel` is a descriptor that becomes readable when every exchange is to be given up; -1: none.
    explicit HttpClient(HttpCredentials access, int cancel = -1);
    HttpClient(HttpClient&&) noexcept;
    HttpClient& operator=(HttpClient&&) noexcept;
    ~HttpClient();

    // Any complete answer is a reply, whatever its status; redirects are not followed. bad_input: no complete
    // answer came. The message names the URL, without password and query.
    [[nodiscard]] Result<HttpReply> call(const HttpCall& call);

    // Whether `cancel` is readable.
    [[nodiscard]] bool cancelled() const;
    // Waits for so long, or until the cancellation.
    void wait(std::chrono::milliseconds time) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace sieve::fleet
