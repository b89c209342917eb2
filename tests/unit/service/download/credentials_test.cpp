// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/credentials.hpp"

#include <sys/stat.h>

#include <fstream>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::service {
namespace {

class CredentialFiles : public testing::Test {
  protected:
    test::Files files;

    std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) const {
        std::ofstream(files.path(name), std::ios::binary) << text;
        ::chmod(files.path(name).c_str(), mode);
        return files.path(name);
    }
    static Status read(const HttpAccess& access) {
        const auto credentials = read_credentials(access);
        return credentials ? Status() : tl::unexpected(credentials.error());
    }
    Status read_headers(const std::string& text) const {
        return read({.header_file = write("headers", text)});
    }
    Status read_key(const std::string& text, mode_t mode = 0600) const {
        return read({.server = {"", write("cert", certificate, 0644), write("key", text, mode)}});
    }
    const std::string certificate = "-----BEGIN CERTIFICATE-----\n";
    const std::string key = "-----BEGIN PRIVATE KEY-----\n";
};

TEST_F(CredentialFiles, AreReadAtOnce) {
    const auto credentials = read_credentials({
        .server = {write("ca", certificate, 0644), write("cert", certificate, 0644), write("key", key)},
        .header_file = write("headers", "X-Key: 1 2\r\n\nCookie:\ta=b\n"),
        .username = "u",
        .password_file = write("pw", "p w\n"),
        .proxy = {"http://p", "v", write("ppw", "q")},
    });
    ASSERT_TRUE(credentials) << credentials.error().message;
    EXPECT_EQ(credentials->server.authorities, certificate);
    EXPECT_EQ(credentials->server.certificate, certificate);
    EXPECT_EQ(credentials->server.key, key);
    EXPECT_EQ(credentials->headers, (std::vector<std::string>{"X-Key: 1 2", "Cookie:\ta=b"}));
    EXPECT_EQ(credentials->username, "u");
    EXPECT_EQ(credentials->password, "p w");
    EXPECT_EQ(credentials->proxy_password, "q");
}

TEST_F(CredentialFiles, ACertificatesFileMayHoldItsKey) {
    const auto server = read_server_secrets({"", write("both", certificate + key), ""});
    ASSERT_TRUE(server) << server.error().message;
    EXPECT_EQ(server->key, certificate + key);
    expect_error(read({.server = {"", write("both", certificate + key, 0644), ""}}), ErrorKind::bad_input);
}

TEST_F(CredentialFiles, AKeyIsSecretAndHasNoPassphrase) {
    EXPECT_TRUE(read_key(key));
    expect_error(read_key(key, 0644), ErrorKind::bad_input);
    for (const char* text :
         {"-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "none", "-----BEGIN CERTIFICATE-----\n",
          "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"})
        expect_error(read_key(text), ErrorKind::bad_input);
}

TEST_F(CredentialFiles, CertificatesAreCertificates) {
    expect_error(read({.server = {files.path("none")}}), ErrorKind::bad_input);
    expect_error(read({.server = {write("ca", "none")}}), ErrorKind::bad_input);
}

TEST_F(CredentialFiles, HeadersAreLinesOfNameAndValue) {
    for (const std::string& text :
         {std::string("s3cret"), std::string("X: s3cret\ns3cret\n"), std::string("X:\n"),
          std::string("X: \n"), std::string(": s3cret"), std::string("X Y: s3cret"),
          std::string("X: s3cret\0", 10), std::string("X: s3cret\rY: 1\n"), std::string("X;\n"),
          std::string("@file\n"), std::string("\n\n")}) {
        const Status headers = read_headers(text);
        expect_error(headers, ErrorKind::bad_input);
        ASSERT_FALSE(headers);
        EXPECT_EQ(headers.error().message.find("s3cret"), std::string::npos) << headers.error().message;
    }
    expect_error(read_headers("X: 1\nwrong\n"), ErrorKind::bad_input);
    expect_error(read_headers("X: " + std::string(32768, 'x')), ErrorKind::bad_input);
    write("headers", "X: 1\n", 0644);
    expect_error(read({.header_file = files.path("headers")}), ErrorKind::bad_input);
}

} // namespace
} // namespace sieve::service
