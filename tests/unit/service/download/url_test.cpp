// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/url.hpp"

#include <gtest/gtest.h>

namespace sieve::service {
namespace {

TEST(Url, AUrlIsShownWithoutSecrets) {
    EXPECT_EQ(displayed_url("https://h.example/a/b.txt"), "https://h.example/a/b.txt");
    EXPECT_EQ(displayed_url("https://user:pass@h.example:8443/a"), "https://h.example:8443/a");
    EXPECT_EQ(displayed_url("https://h.example/a?key=1234#part"), "https://h.example/a?...");
    EXPECT_EQ(displayed_url("https://[2001:db8::1]/a"), "https://[2001:db8::1]/a");
    EXPECT_EQ(displayed_url("https://user:pa ss@h/"), "a URL that cannot be understood");
    EXPECT_EQ(displayed_url("http://h/\x1b[31m").find('\x1b'), std::string::npos);
}

TEST(Url, OnlyHttpAndHttps) {
    EXPECT_TRUE(check_url("http://h/"));
    EXPECT_TRUE(check_url("https://h"));
    for (const char* url : {"", "h", "/etc/passwd", "file:///etc/passwd", "ftp://h/a", "https://"})
        EXPECT_FALSE(check_url(url)) << url;
}

TEST(Url, AServerIsSchemeHostAndPort) {
    EXPECT_EQ(server_of("https://User:pw@Lists.Example/a?b#c"), "https://lists.example:443");
    EXPECT_EQ(server_of("http://h:8080/"), "http://h:8080");
    EXPECT_EQ(server_of("http://h"), "http://h:80");
    EXPECT_EQ(server_of("http://[2001:db8::1]:1/"), "http://[2001:db8::1]:1");
    EXPECT_EQ(server_of("https://a b/"), "");
}

TEST(Url, AUserIsTakenOut) {
    std::string url = "https://us%3Aer:p%40ss@h.example/a?b";
    const UrlUser user = take_user(url);
    EXPECT_EQ(user.name, "us:er");
    EXPECT_EQ(user.password, "p@ss");
    EXPECT_EQ(url, "https://h.example/a?b");
    EXPECT_TRUE(take_user(url).name.empty());
    EXPECT_EQ(url, "https://h.example/a?b");
}

} // namespace
} // namespace sieve::service
