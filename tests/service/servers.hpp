// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Servers on loopback: a real nginx with certificates of a test authority, and a server that sends what a
// test tells it to.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libsieve/util/system/unique_fd.hpp"
#include "service/support.hpp"

namespace sieve::service::test {

// nginx serves the folder's "www" on http://localhost:8080 and https://localhost:8443, and on 8444 with an
// expired certificate. ca.pem is the authority of both certificates; other.pem is another authority. Below
// /private/ the user is `reader` with the password `s3cret`, below /by-header/ the header `X-Key: h3ader` is
// wanted, and on 8445 a certificate of the authority, such as client.pem with client.key. 8446 is another
// server, which wants nothing.
class Nginx {
  public:
    Nginx();
    Nginx(const Nginx&) = delete;
    Nginx& operator=(const Nginx&) = delete;
    ~Nginx();

    void put(const std::string& name, const std::string& content) const {
        folder_.write("www/" + name, content);
    }
    [[nodiscard]] const Folder& folder() const { return folder_; }
    [[nodiscard]] std::string authority() const { return folder_.path("ca.pem"); }
    // Lines such as "GET /list.txt 304", in the order of the answers.
    [[nodiscard]] std::string log() const { return folder_.read("access.log"); }
    // Lines such as "8446 /list.txt user [] key [] client [] agent [xdp-sieve/1]": what each request had.
    [[nodiscard]] std::string seen() const { return folder_.read("seen.log"); }

  private:
    void make_certificates() const;

    Folder folder_;
    pid_t pid_ = -1;
};

// Answers each connection with what the script writes. The script gets the head of the request.
class ScriptedServer {
  public:
    using Script = std::function<void(int connection, const std::string& request)>;

    explicit ScriptedServer(Script script);
    // Sends this and closes.
    explicit ScriptedServer(const std::string& answer);
    ScriptedServer(const ScriptedServer&) = delete;
    ScriptedServer& operator=(const ScriptedServer&) = delete;
    ~ScriptedServer();

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string url(const std::string& path = "/list") const {
        return "http://127.0.0.1:" + std::to_string(port_) + path;
    }

  private:
    void serve();

    Script script_;
    UniqueFd listening_;
    std::uint16_t port_ = 0;
    std::thread thread_;
};

// False if the other end has gone.
bool send_all(int connection, const std::string& bytes);

} // namespace sieve::service::test
