// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Downloads, each in a separate child.
#include <gtest/gtest.h>

#include "libsieve/service/sources/gather.hpp"
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
        return gather(HttpOrigin{url, nginx_->authority()}, known, settings);
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
    const auto other =
        gather(HttpOrigin{"https://localhost:8443/list.txt", nginx_->folder().path("other.pem")}, nullptr,
               quick_settings());
    ASSERT_FALSE(other);
    EXPECT_SAYS(other.error().error.message, "https://localhost:8443/list.txt: SSL certificate problem");
    // The system's authorities do not include the test's.
    const auto system = gather(HttpOrigin{"https://localhost:8443/list.txt"}, nullptr, quick_settings());
    ASSERT_FALSE(system);
    EXPECT_SAYS(system.error().error.message, "certificate");
    const auto none =
        gather(HttpOrigin{"https://localhost:8443/list.txt", "/no/such.pem"}, nullptr, quick_settings());
    ASSERT_FALSE(none);
    EXPECT_SAYS(none.error().error.message, "/no/such.pem: cannot be read: No such file");
    const auto text =
        gather(HttpOrigin{"https://localhost:8443/list.txt", nginx_->folder().path("nginx.conf")}, nullptr,
               quick_settings());
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

TEST_F(Download, AProxyIsAskedInstead) {
    std::string request;
    const ScriptedServer proxy([&](int connection, const std::string& head) {
        request = head;
        send_all(connection, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n192.0.2.9\n");
    });
    const auto done =
        gather(HttpOrigin{"http://lists.example/a", {}, proxy.url("")}, nullptr, quick_settings());
    ASSERT_TRUE(done) << done.error().error.message;
    EXPECT_EQ(content_of(done->content->get()), "192.0.2.9\n");
    EXPECT_TRUE(request.starts_with("GET http://lists.example/a HTTP/1.1\r\n")) << request;
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
