// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Downloads, each in a separate child.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "libsieve/service/sources/gather.hpp"
#include "libsieve/util/text/version.hpp"
#include "service/servers.hpp"
#include "service/support.hpp"

namespace sieve::service {
namespace {

using namespace test;

class Download : public testing::Test {
  protected:
    static void SetUpTestSuite() { nginx_ = std::make_unique<Nginx>(); }
    static void TearDownTestSuite() { nginx_.reset(); }

    static auto fetch(const std::string& url, const SandboxSettings& settings = quick_settings(),
                      const SourceProvenance* known = nullptr) {
        return gather(HttpOrigin{url, access()}, known, settings);
    }
    // Trusts the test's authority.
    static HttpAccess access(HttpAccess more = {}) {
        more.server.certificates = nginx_->authority();
        return more;
    }
    static auto fetch(const std::string& url, const HttpAccess& more) {
        return gather(HttpOrigin{url, access(more)}, nullptr, quick_settings());
    }
    // The list, or why there is none.
    static std::string list_of(const std::string& url, const HttpAccess& more) {
        const auto done = fetch(url, more);
        return done ? content_of(done->content->get()) : done.error().error.message;
    }
    // A file that root alone can read.
    static std::string secret(const std::string& name, const std::string& text) {
        std::string path = nginx_->folder().write(name, text);
        std::filesystem::permissions(path, std::filesystem::perms(0600));
        return path;
    }
    // nginx writes its log after it has answered.
    static bool was_seen(const std::string& line) {
        return await([&] { return nginx_->seen().find(line) != std::string::npos; });
    }
    // The message of a download that must fail.
    static std::string error_of(const std::string& url, const SandboxSettings& settings = quick_settings()) {
        const auto done = fetch(url, settings);
        return done ? "was downloaded" : done.error().error.message;
    }

    static std::unique_ptr<Nginx> nginx_;
};
std::unique_ptr<Nginx> Download::nginx_;

#define EXPECT_SAYS(text, part) EXPECT_PRED_FORMAT2(testing::IsSubstring, part, text)

TEST_F(Download, AListComesAsItIs) {
    nginx_->put("list.txt", "192.0.2.1\n192.0.2.2\n");
    for (const char* url : {"http://localhost:8080/list.txt", "https://localhost:8443/list.txt"}) {
        const auto done = fetch(url);
        ASSERT_TRUE(done) << done.error().error.message;
        EXPECT_EQ(content_of(done->content->get()), "192.0.2.1\n192.0.2.2\n");
        EXPECT_FALSE(done->unchanged);
        EXPECT_EQ(done->provenance.source, url);
        EXPECT_EQ(done->provenance.bytes, 20U);
        EXPECT_FALSE(done->provenance.etag.empty());
        EXPECT_FALSE(done->provenance.last_modified.empty());
        EXPECT_FALSE(done->provenance.digest.empty());
    }
}

TEST_F(Download, AnETagSavesTheSecondOne) {
    nginx_->put("tagged.txt", "192.0.2.1\n");
    const std::string url = "http://localhost:8080/tagged.txt";
    auto first = fetch(url);
    ASSERT_TRUE(first) << first.error().error.message;
    first->provenance.last_modified.clear();
    const auto second = fetch(url, quick_settings(), &first->provenance);
    ASSERT_TRUE(second) << second.error().error.message;
    EXPECT_TRUE(second->unchanged);
    EXPECT_FALSE(second->content);
    EXPECT_EQ(second->provenance.digest, first->provenance.digest);
    // nginx writes its log after it has answered.
    EXPECT_TRUE(await([&] {
        return nginx_->log().find("GET /tagged.txt 200\nGET /tagged.txt 304\n") != std::string::npos;
    })) << nginx_->log();
    nginx_->put("tagged.txt", "192.0.2.1\n192.0.2.2\n");
    const auto third = fetch(url, quick_settings(), &second->provenance);
    ASSERT_TRUE(third) << third.error().error.message;
    EXPECT_FALSE(third->unchanged);
    EXPECT_EQ(content_of(third->content->get()), "192.0.2.1\n192.0.2.2\n");
}

TEST_F(Download, ADateSavesTheSecondOne) {
    nginx_->put("dated.txt", "192.0.2.1\n");
    const std::string url = "http://localhost:8080/by-date/dated.txt";
    const auto first = fetch(url);
    ASSERT_TRUE(first) << first.error().error.message;
    EXPECT_TRUE(first->provenance.etag.empty());
    const auto second = fetch(url, quick_settings(), &first->provenance);
    ASSERT_TRUE(second) << second.error().error.message;
    EXPECT_TRUE(second->unchanged);
    // nginx writes its log after it has answered.
    EXPECT_TRUE(await([&] {
        return nginx_->log().find("GET /by-date/dated.txt 200\nGET /by-date/dated.txt 304\n") !=
               std::string::npos;
    })) << nginx_->log();
}

TEST_F(Download, WithoutValidatorsTheDigestTells) {
    const ScriptedServer server("HTTP/1.0 200 OK\r\n\r\n192.0.2.1\n");
    const auto first = fetch(server.url());
    ASSERT_TRUE(first) << first.error().error.message;
    const auto second = fetch(server.url(), quick_settings(), &first->provenance);
    ASSERT_TRUE(second) << second.error().error.message;
    EXPECT_TRUE(second->unchanged);
    EXPECT_TRUE(second->content);
}

TEST_F(Download, CertificatesAreChecked) {
    EXPECT_SAYS(error_of("https://localhost:8444/list.txt"), "certificate has expired");
    EXPECT_SAYS(error_of("https://127.0.0.1:8443/list.txt"), "127.0.0.1");
    const auto other = gather(
        HttpOrigin{"https://localhost:8443/list.txt", {.server = {nginx_->folder().path("other.pem")}}},
        nullptr, quick_settings());
    ASSERT_FALSE(other);
    EXPECT_SAYS(other.error().error.message, "https://localhost:8443/list.txt: SSL certificate problem");
    // The system's authorities do not include the test's.
    const auto system = gather(HttpOrigin{"https://localhost:8443/list.txt"}, nullptr, quick_settings());
    ASSERT_FALSE(system);
    EXPECT_SAYS(system.error().error.message, "certificate");
    const auto none = gather(HttpOrigin{"https://localhost:8443/list.txt", {.server = {"/no/such.pem"}}},
                             nullptr, quick_settings());
    ASSERT_FALSE(none);
    EXPECT_SAYS(none.error().error.message,
                "https://localhost:8443/list.txt: /no/such.pem: cannot be read: No such file");
    const auto text = gather(
        HttpOrigin{"https://localhost:8443/list.txt", {.server = {nginx_->folder().path("nginx.conf")}}},
        nullptr, quick_settings());
    ASSERT_FALSE(text);
    EXPECT_SAYS(text.error().error.message, "expected certificates");
}

TEST_F(Download, RedirectsLeadToHttpsOnly) {
    nginx_->put("list.txt", "192.0.2.1\n");
    const auto followed = fetch("http://localhost:8080/to-https");
    ASSERT_TRUE(followed) << followed.error().error.message;
    EXPECT_EQ(content_of(followed->content->get()), "192.0.2.1\n");
    for (const char* url : {"https://localhost:8443/to-http", "http://localhost:8080/to-http"})
        EXPECT_SAYS(error_of(url),
                    "redirects to http://localhost:8080/list.txt, expected a redirect to https");
    EXPECT_SAYS(error_of("https://localhost:8443/loop"), "redirects more than 5 times");
}

TEST_F(Download, AnotherAnswerIsAFailure) {
    EXPECT_SAYS(error_of("http://localhost:8080/none.txt"),
                "http://localhost:8080/none.txt: the server answered 404 Not Found, expected 200");
    const auto busy = fetch("http://localhost:8080/busy");
    ASSERT_FALSE(busy);
    EXPECT_SAYS(busy.error().error.message, "answered 503");
    EXPECT_EQ(busy.error().retry_after, std::chrono::seconds(7));
    const ScriptedServer unasked("HTTP/1.1 304 Not Modified\r\n\r\n");
    EXPECT_SAYS(error_of(unasked.url()), "answered 304");
}

TEST_F(Download, NobodyListens) {
    EXPECT_SAYS(error_of("http://127.0.0.1:1/list"), "http://127.0.0.1:1/list: Failed to connect");
    EXPECT_SAYS(error_of("http://no-such-host.invalid/list"), "Could not resolve host");
}

TEST_F(Download, AHiddenKeyStaysHidden) {
    nginx_->put("list.txt", "192.0.2.1\n");
    const auto done = fetch("http://user:pass@localhost:8080/secret/list.txt?key=s3cr3t");
    ASSERT_TRUE(done) << done.error().error.message;
    EXPECT_SAYS(done->provenance.source, "http://localhost:8080/secret/list.txt?... #");
    const std::string refused = error_of("http://user:pass@localhost:8080/secret/list.txt?key=wr0ng");
    EXPECT_SAYS(refused, "http://localhost:8080/secret/list.txt?...: the server answered 403");
    for (const char* secret : {"pass", "wr0ng"})
        EXPECT_EQ(refused.find(secret), std::string::npos) << refused;
}

TEST_F(Download, ASlowServerIsGivenUp) {
    std::atomic<int> sent = 0;
    const ScriptedServer server([&](int connection, const std::string&) {
        send_all(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        while (send_all(connection, "#")) {
            ++sent;
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
    });
    SandboxSettings settings = quick_settings();
    settings.limits.low_speed = std::chrono::seconds(1);
    EXPECT_SAYS(error_of(server.url(), settings), "Operation too slow");
    EXPECT_GT(sent, 0);
    settings.limits.low_speed = std::chrono::seconds(100);
    settings.limits.fetch = std::chrono::milliseconds(700);
    EXPECT_SAYS(error_of(server.url(), settings), "timed out after");
}

TEST_F(Download, ASizeHasALimit) {
    SandboxSettings settings = quick_settings();
    settings.limits.source_bytes = 1000;
    const std::string large(2000, '#');
    const ScriptedServer told("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + large);
    EXPECT_SAYS(error_of(told.url(), settings), "larger than 1000 bytes, the limit");
    const ScriptedServer chunked("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + large +
                                 "\r\n0\r\n\r\n");
    EXPECT_SAYS(error_of(chunked.url(), settings), "larger than 1000 bytes, the limit");
    const ScriptedServer endless([&](int connection, const std::string&) {
        send_all(connection, "HTTP/1.0 200 OK\r\n\r\n");
        while (send_all(connection, large)) {
        }
    });
    EXPECT_SAYS(error_of(endless.url(), settings), "larger than 1000 bytes, the limit");
    settings.limits.source_bytes = 2000;
    EXPECT_TRUE(fetch(chunked.url(), settings));
}

TEST_F(Download, ABodyThatWasCutShortIsNoList) {
    const ScriptedServer told("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n192.0.2.1\n");
    EXPECT_SAYS(error_of(told.url()), "the answer was cut short");
    const ScriptedServer chunked("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n192.0.2.1\n\r\n");
    EXPECT_NE(error_of(chunked.url()), "was downloaded");
    const ScriptedServer nothing("");
    EXPECT_SAYS(error_of(nothing.url()), "cut short");
}

TEST_F(Download, AHeaderLineIsNotTooLong) {
    const ScriptedServer server("HTTP/1.1 200 OK\r\nX-Long: " + std::string(5'000'000, 'x') + "\r\n\r\n");
    EXPECT_SAYS(error_of(server.url()), "a header line of the answer is too long");
}

TEST_F(Download, AProxyIsAskedInstead) {
    std::string request;
    const ScriptedServer proxy([&](int connection, const std::string& head) {
        request = head;
        send_all(connection, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n192.0.2.9\n");
    });
    const auto done =
        gather(HttpOrigin{"http://lists.example/a", {.proxy = {proxy.url("")}}}, nullptr, quick_settings());
    ASSERT_TRUE(done) << done.error().error.message;
    EXPECT_EQ(content_of(done->content->get()), "192.0.2.9\n");
    EXPECT_TRUE(request.starts_with("GET http://lists.example/a HTTP/1.1\r\n")) << request;
}

TEST_F(Download, AProxyMayWantAUser) {
    std::string request;
    const ScriptedServer proxy([&](int connection, const std::string& head) {
        request = head;
        const bool known =
            head.find("Proxy-Authorization: Basic cHU6cHB3\r\n") != std::string::npos; // pu:ppw
        send_all(connection, known
                                 ? "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n192.0.2.9\n"
                                 : "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
    });
    HttpAccess access{.proxy = {proxy.url(""), "pu", secret("ppw", "ppw\n")}};
    EXPECT_EQ(list_of("http://lists.example/a", access), "192.0.2.9\n");
    secret("ppw", "wr0ng\n");
    EXPECT_EQ(
        list_of("http://lists.example/a", access),
        "http://lists.example/a: the proxy answered 407 Proxy Authentication Required, expected 200; it "
        "does not take the user name and password");
    access.proxy.username = access.proxy.password_file = "";
    EXPECT_SAYS(list_of("http://lists.example/a", access), "it wants a user name and a password");
    // What is for the server does not go to the proxy.
    access.header_file = secret("headers", "X-Key: h3ader\n");
    access.username = "reader";
    access.password_file = secret("password", "s3cret\n");
    EXPECT_SAYS(list_of("https://lists.example/a", access), "407");
    EXPECT_TRUE(request.starts_with("CONNECT lists.example:443 HTTP/1.1\r\n")) << request;
    EXPECT_EQ(request.find("X-Key"), std::string::npos) << request;
    EXPECT_EQ(request.find("Authorization"), std::string::npos) << request;
}

TEST_F(Download, NoProxyIsAskedForThisHost) {
    nginx_->put("list.txt", "192.0.2.1\n");
    const HttpAccess access{.proxy = {"http://127.0.0.1:1"}};
    for (const char* url : {"http://localhost:8080/list.txt", "http://127.0.0.1:8080/list.txt"})
        EXPECT_EQ(list_of(url, access), "192.0.2.1\n") << url;
    EXPECT_SAYS(list_of("http://lists.example/a", access), "127.0.0.1 port 1");
}

TEST_F(Download, AServerMayWantAUser) {
    nginx_->put("list.txt", "192.0.2.1\n");
    const std::string url = "https://localhost:8443/private/list.txt";
    const HttpAccess access{.username = "reader", .password_file = secret("password", "s3cret\n")};
    EXPECT_EQ(list_of(url, access), "192.0.2.1\n");
    EXPECT_EQ(list_of("https://localhost:8443/to-private", access), "192.0.2.1\n");
    EXPECT_EQ(list_of("https://reader:s3cret@localhost:8443/to-private", {}), "192.0.2.1\n");
    EXPECT_EQ(list_of(url, {}), url + ": the server answered 401 Unauthorized, expected 200; it wants a user "
                                      "name and a password, or headers");
    // The file is read for each download.
    secret("password", "wr0ng\n");
    EXPECT_EQ(list_of(url, access), url + ": the server answered 401 Unauthorized, expected 200; it does not "
                                          "take the user name, password or headers");
    secret("password", "s3cret\n");
    EXPECT_EQ(list_of(url, access), "192.0.2.1\n");
    std::filesystem::permissions(access.password_file, std::filesystem::perms(0644));
    EXPECT_SAYS(list_of(url, access), url + ": " + access.password_file + ": others may read or write it");
}

TEST_F(Download, AServerMayWantAHeader) {
    nginx_->put("list.txt", "192.0.2.1\n");
    const std::string url = "https://localhost:8443/by-header/list.txt";
    EXPECT_SAYS(list_of(url, {}), "answered 403 Forbidden");
    EXPECT_EQ(list_of(url, {.header_file = secret("headers", "X-Other: 1\nX-Key: h3ader\n")}), "192.0.2.1\n");
    EXPECT_SAYS(list_of(url, {.header_file = secret("headers", "X-Key h3ader\n")}),
                "headers:1: expected lines `NAME: VALUE`");
}

TEST_F(Download, AServerMayWantACertificate) {
    nginx_->put("list.txt", "192.0.2.1\n");
    const std::string url = "https://localhost:8445/list.txt";
    EXPECT_SAYS(list_of(url, {}), "answered 400 Bad Request");
    const auto& folder = nginx_->folder();
    EXPECT_EQ(list_of(url, {.server = {"", folder.path("client.pem"), folder.path("client.key")}}),
              "192.0.2.1\n");
    EXPECT_EQ(
        list_of(url,
                {.server = {"", secret("both", folder.read("client.key") + folder.read("client.pem")), ""}}),
        "192.0.2.1\n");
    EXPECT_SAYS(list_of(url, {.server = {"", folder.path("client.pem"), folder.path("server.key")}}),
                "the client certificate and its key cannot be used: ");
}

// Wherever a redirect leads: only the scheme, host and port of the URL are asked with what is secret.
TEST_F(Download, WhatIsSecretStaysWithItsServer) {
    nginx_->put("list.txt", "192.0.2.1\n");
    const auto& folder = nginx_->folder();
    const HttpAccess access{.server = {"", folder.path("client.pem"), folder.path("client.key")},
                            .header_file = secret("headers", "X-Key: h3ader\n"),
                            .username = "reader",
                            .password_file = secret("password", "s3cret\n"),
                            .user_agent = "away/1"};
    EXPECT_EQ(list_of("https://localhost:8445/away", access), "192.0.2.1\n");
    EXPECT_TRUE(
        was_seen("8445 /away user [Basic cmVhZGVyOnMzY3JldA==] key [h3ader] client [CN=sieve-test-client] "
                 "agent [away/1]"))
        << nginx_->seen();
    EXPECT_TRUE(was_seen("8446 /list.txt user [-] key [-] client [-] agent [away/1]")) << nginx_->seen();
    EXPECT_SAYS(list_of("https://localhost:8443/far", access),
                "answered 401 Unauthorized, expected 200; it wants a password, and the redirect has led from "
                "https://localhost:8443 to https://localhost:8446, which gets none");
    EXPECT_SAYS(list_of("https://reader:s3cret@localhost:8443/far", {}), "which gets none");
    EXPECT_EQ(list_of("http://reader:s3cret@localhost:8080/to-https", {.user_agent = "up/1"}), "192.0.2.1\n");
    EXPECT_TRUE(was_seen("8443 /list.txt user [-] key [-] client [-] agent [up/1]")) << nginx_->seen();
}

TEST_F(Download, AServerIsToldWhoAsks) {
    nginx_->put("list.txt", "192.0.2.1\n");
    EXPECT_EQ(list_of("http://localhost:8080/list.txt?own", {}), "192.0.2.1\n");
    EXPECT_TRUE(was_seen("agent [xdp-sieve/" + std::string(version) + "]")) << nginx_->seen();
    EXPECT_EQ(list_of("http://localhost:8080/list.txt", {.user_agent = "Mozilla/5.0 (X11)"}), "192.0.2.1\n");
    EXPECT_TRUE(was_seen("agent [Mozilla/5.0 (X11)]")) << nginx_->seen();
}

TEST_F(Download, NoSecretIsInTheListOfProcesses) {
    std::atomic<pid_t> child = 0;
    std::string shown;
    const ScriptedServer server([&](int connection, const std::string& head) {
        for (const std::string& process : {std::to_string(child), std::string("self")})
            for (const char* file : {"cmdline", "environ"}) {
                std::ifstream from("/proc/" + process + "/" + file, std::ios::binary);
                shown.append(std::istreambuf_iterator<char>(from), {});
            }
        send_all(connection, head.find("cmVhZGVyOnMzY3JldA==") != std::string::npos
                                 ? "HTTP/1.0 200 OK\r\n\r\n192.0.2.1\n"
                                 : "HTTP/1.0 401 Unauthorized\r\n\r\n");
    });
    SandboxSettings settings = quick_settings();
    settings.started = [&](ChildRole, pid_t pid) { child = pid; };
    const HttpOrigin origin{server.url(),
                            {.header_file = secret("headers", "X-Key: h3ader\n"),
                             .username = "reader",
                             .password_file = secret("password", "s3cret\n")}};
    const auto done = gather(origin, nullptr, settings);
    ASSERT_TRUE(done) << done.error().error.message;
    EXPECT_NE(shown.find("--sieve-child"), std::string::npos);
    for (const char* secret : {"s3cret", "h3ader"}) {
        EXPECT_EQ(shown.find(secret), std::string::npos) << shown;
        EXPECT_EQ(done->provenance.source.find(secret), std::string::npos) << done->provenance.source;
    }
}

TEST_F(Download, TheChildHasNoRights) {
    std::atomic<pid_t> child = 0;
    std::string capabilities = "none seen";
    std::string privileges;
    std::string seccomp;
    std::string user;
    // Meanwhile the child waits for the answer.
    const ScriptedServer server([&](int connection, const std::string&) {
        capabilities = status_of(child, "CapEff") + status_of(child, "CapBnd");
        privileges = status_of(child, "NoNewPrivs");
        seccomp = status_of(child, "Seccomp");
        user = status_of(child, "Uid");
        send_all(connection, "HTTP/1.0 200 OK\r\n\r\n192.0.2.1\n");
    });
    SandboxSettings settings = quick_settings();
    settings.started = [&](ChildRole, pid_t pid) { child = pid; };
    const auto done = fetch(server.url(), settings);
    ASSERT_TRUE(done) << done.error().error.message;
    EXPECT_EQ(capabilities, "00000000000000000000000000000000");
    EXPECT_EQ(privileges, "1");
    EXPECT_EQ(seccomp, "2");
    EXPECT_EQ(user, "65534\t65534\t65534\t65534");
}

} // namespace
} // namespace sieve::service
