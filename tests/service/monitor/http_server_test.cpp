// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The HTTP server against polite and hostile clients, over loopback.
#include "libsieve/service/monitor/http_server.hpp"

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "service/monitor/http.hpp"
#include "service/support.hpp"

namespace sieve::service::watching {
namespace {

using namespace test;
using namespace std::chrono_literals;

#define EXPECT_SAYS(text, part) EXPECT_PRED_FORMAT2(testing::IsSubstring, part, text)

constexpr std::uint16_t port = 19273;

class HttpServerTest : public testing::Test {
  protected:
    void start(HttpSettings settings = {}) {
        auto server = HttpServer::start(settings, [this](std::string_view path) {
            asked_++;
            if (path == "/fault") throw std::runtime_error("a fault");
            if (path == "/big") return HttpResponse{.body = std::string(64 << 20, 'x')};
            return HttpResponse{.body = "answer for " + std::string(path) + "\n"};
        });
        ASSERT_TRUE(server) << server.error().message;
        server_.emplace(std::move(*server));
    }
    [[nodiscard]] std::string url(const std::string& path = "/") const {
        return "http://" + server_->address() + path;
    }

    std::atomic<int> asked_ = 0;
    std::optional<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersGetAndHead) {
    start();
    EXPECT_EQ(server_->address(), "127.0.0.1:19273");
    const HttpReply reply = ask(url("/metrics?x=1"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "answer for /metrics\n");
    EXPECT_SAYS(reply.headers, "Content-Security-Policy: default-src 'none'");
    EXPECT_SAYS(reply.headers, "X-Content-Type-Options: nosniff");
    EXPECT_SAYS(reply.headers, "X-Frame-Options: DENY");
    EXPECT_SAYS(reply.headers, "Referrer-Policy: no-referrer");
    EXPECT_SAYS(reply.headers, "Cache-Control: no-store");
    const HttpReply head = ask(url("/metrics"), "HEAD");
    EXPECT_EQ(head.status, 200);
    EXPECT_SAYS(head.headers, "Content-Length: 20");
    EXPECT_EQ(head.body, "");
}

TEST_F(HttpServerTest, ChangesNothing) {
    start();
    for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"}) {
        const HttpReply reply = ask(url(), method);
        EXPECT_EQ(reply.status, 405) << method;
        EXPECT_SAYS(reply.headers, "Allow: GET, HEAD");
    }
    EXPECT_EQ(asked_, 0);
}

// A page from elsewhere can give its own name the address 127.0.0.1, but its browser still sends the name.
TEST_F(HttpServerTest, OnLoopbackKnowsOnlyLocalNames) {
    start();
    for (const char* host :
         {"localhost", "LOCALHOST:19273", "127.0.0.1", "127.8.9.1:80", "[::1]:19273", "localhost."})
        EXPECT_EQ(ask(url(), "GET", {std::string("Host: ") + host}).status, 200) << host;
    asked_ = 0;
    for (const char* host :
         {"evil.example", "evil.example:19273", "localhost.evil.example", "127.0.0.1.evil.example",
          "192.0.2.1", "[::2]", "127.1", "evil.example#127.0.0.1", "127.0.0.1:80:90"})
        EXPECT_EQ(ask(url(), "GET", {std::string("Host: ") + host}).status, 421) << host;
    EXPECT_EQ(asked_, 0);
}

TEST_F(HttpServerTest, ElsewhereTakesEveryName) {
    start({.listen = "0.0.0.0:19273"});
    EXPECT_EQ(ask("http://127.0.0.1:19273/", "GET", {"Host: gate.example.net"}).status, 200);
}

TEST_F(HttpServerTest, ListensOnIPv6) {
    start({.listen = "[::1]:19273"});
    EXPECT_EQ(server_->address(), "[::1]:19273");
    EXPECT_EQ(ask(url()).status, 200);
}

TEST_F(HttpServerTest, WrongAddressesAreRefused) {
    for (const char* listen : {"", "19273", "127.0.0.1", "localhost:19273", "127.0.0.1:0", "127.0.0.1:99999",
                               "::1:19273", "127.0.0.1:9273x", "\x1b[2J:1"}) {
        const auto server = HttpServer::start({.listen = listen}, {});
        ASSERT_FALSE(server) << listen;
        EXPECT_EQ(server.error().kind, ErrorKind::invalid_request) << listen;
        EXPECT_SAYS(server.error().message, "such as 127.0.0.1:19273 or [::1]:19273");
    }
}

TEST_F(HttpServerTest, AnAddressInUseIsRefused) {
    start();
    const auto second = HttpServer::start({}, {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::kernel_refused);
    EXPECT_SAYS(second.error().message, "listening on 127.0.0.1:19273: bind: Address already in use");
    EXPECT_EQ(ask(url()).status, 200);
    server_.reset();
    start(); // the address is free again
    EXPECT_EQ(ask(url()).status, 200);
}

TEST_F(HttpServerTest, AFaultInAnAnswerIsAnAnswer) {
    start();
    EXPECT_EQ(ask(url("/fault")).status, 500);
    EXPECT_EQ(ask(url()).status, 200);
}

TEST_F(HttpServerTest, ALongHeaderIsRefused) {
    start();
    const HttpReply reply = ask(url(), "GET", {"X-Long: " + std::string(100'000, 'x')});
    EXPECT_TRUE(reply.status == 431 || reply.status == 413 || reply.status == 0) << reply.status;
    EXPECT_EQ(asked_, 0);
    EXPECT_EQ(ask(url()).status, 200);
}

// Clients that send one byte after the other, as many as there may be, and more: the oldest go.
TEST_F(HttpServerTest, SlowClientsDoNotKeepOthersOut) {
    start({.patience = 600s, .connections = 8});
    std::vector<UniqueFd> slow;
    for (int i = 0; i < 40; i++) {
        slow.push_back(connect_to(port));
        ASSERT_TRUE(slow.back());
        (void)send_text(slow.back().get(), "GET / HT");
        if (i % 5 == 4) {
            EXPECT_EQ(ask(url()).status, 200) << "beside " << i + 1 << " slow ones";
        }
    }
    // The first of them was cut off long ago; the last is still served.
    EXPECT_EQ(read_to_end(slow.front().get()), "");
    ASSERT_TRUE(send_text(slow.back().get(), "TP/1.1\r\nHost: localhost\r\n\r\n"));
    EXPECT_SAYS(read_to_end(slow.back().get()), "answer for /");
}

// However busily it sends: its time is over.
TEST_F(HttpServerTest, ASlowClientIsCutOff) {
    start({.patience = 3s});
    const UniqueFd slow = connect_to(port);
    ASSERT_TRUE(slow);
    ASSERT_TRUE(send_text(slow.get(), "GET / HTTP/1.1\r\n"));
    EXPECT_TRUE(await([&] { return !send_text(slow.get(), "X: y\r\n"); }));
    EXPECT_EQ(asked_, 0);
}

TEST_F(HttpServerTest, AClientThatDoesNotReadIsCutOff) {
    start({.patience = 3s});
    const UniqueFd lazy = connect_to(port);
    ASSERT_TRUE(lazy);
    ASSERT_TRUE(send_text(lazy.get(), "GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ASSERT_TRUE(await([&] { return asked_ == 1; }));
    // Others are answered meanwhile, and then it has less than the 64 MiB that it asked for.
    EXPECT_EQ(ask(url()).status, 200);
    pollfd closed{.fd = lazy.get(), .events = POLLRDHUP, .revents = 0};
    EXPECT_EQ(::poll(&closed, 1, 60'000), 1);
    EXPECT_LT(read_to_end(lazy.get()).size(), std::size_t{64} << 20);
}

TEST_F(HttpServerTest, LeavesNothingOpen) {
    const auto open_files = [] {
        std::size_t count = 0;
        for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
            count++;
        return count;
    };
    const std::size_t before = open_files();
    for (int i = 0; i < 5; i++) {
        start({.connections = 4});
        std::vector<UniqueFd> clients;
        for (int k = 0; k < 12; k++) clients.push_back(connect_to(port));
        EXPECT_EQ(ask(url()).status, 200);
        server_.reset();
    }
    EXPECT_EQ(open_files(), before);
}

TEST_F(HttpServerTest, TicksWithoutAnyClient) {
    std::atomic<int> ticks = 0;
    auto server = HttpServer::start(
        {.tick_every = 5ms}, [](std::string_view) { return HttpResponse{}; }, [&] { ticks++; });
    ASSERT_TRUE(server);
    EXPECT_TRUE(await([&] { return ticks >= 3; }));
}

} // namespace
} // namespace sieve::service::watching
