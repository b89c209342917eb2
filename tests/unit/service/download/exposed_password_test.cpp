// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/exposed_password.hpp"

#include <gtest/gtest.h>

#include "unit/messages.hpp"

namespace sieve::service {
namespace {

using Words = std::vector<std::string>;

TEST(ExposedPassword, PlainHttpToAnotherHostCanBeRead) {
    const auto can_be_read = [](const char* proxy) {
        return !exposed_passwords("https://h/a", {.proxy = {proxy, "u", "/p"}}).empty();
    };
    for (const char* url : {"http://lists.example/a", "HTTP://lists.example", "http://192.0.2.1:8080/",
                            "http://[2001:db8::1]/", "http://127.0.0.1.example/", "http://localhost.example/",
                            "http://u:pw@lists.example/", "socks5h://proxy.example:1080"})
        EXPECT_TRUE(can_be_read(url)) << url;
    for (const char* url : {"https://lists.example/a", "HTTPS://lists.example/a", "http://localhost/",
                            "http://127.0.0.1:8080/a", "http://127.9.9.9/", "http://[::1]:8080/",
                            "http://u:pw@localhost/", "socks5h://127.0.0.1:1080"})
        EXPECT_FALSE(can_be_read(url)) << url;
}

TEST(ExposedPassword, EachSecretIsToldWithoutItself) {
    const auto told = [](const Words& remarks) {
        ASSERT_EQ(remarks.size(), 1U);
        expect_says(remarks[0]);
        EXPECT_EQ(remarks[0].find("s3cret"), std::string::npos) << remarks[0];
    };
    const HttpAccess user{.username = "u", .password_file = "/p"};
    told(exposed_passwords("http://h/a?k=s3cret", user));
    told(exposed_passwords("http://u:s3cret@h/a", {}));
    told(exposed_passwords("http://h/a", {.header_file = "/h"}));
    told(exposed_passwords("http://h/", {}, "the bouncer's key"));
    const HttpAccess proxy{.proxy = {"http://proxy.example:3128", "u", "/p"}};
    told(exposed_passwords("https://h/a", proxy));
    EXPECT_EQ(exposed_passwords("https://h/a", user, "the key"), Words{});
    EXPECT_EQ(exposed_passwords("http://localhost/a", user, "the key"), Words{});
    EXPECT_EQ(exposed_passwords("http://h/a", {.server = {"/ca", "/c", "/k"}}), Words{});
}

} // namespace
} // namespace sieve::service
