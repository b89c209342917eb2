// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/credentials.hpp"

#include <sys/stat.h>

#include <fstream>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"

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
    static std::string fault_of(const HttpAccess& access) {
        const auto credentials = read_credentials(access);
        return credentials ? "no fault" : credentials.error().message;
    }
    std::string fault_of_headers(const std::string& text) const {
        return fault_of({.header_file = write("headers", text)});
    }
    std::string fault_of_key(const std::string& text, mode_t mode = 0600) const {
        return fault_of({.server = {"", write("cert", certificate, 0644), write("key", text, mode)}});
    }
    const std::string certificate = "-----BEGIN CERTIFICATE-----\n";
    const std::string key = "-----BEGIN PRIVATE KEY-----\n";
};

#define EXPECT_SAYS(text, part) EXPECT_PRED_FORMAT2(testing::IsSubstring, part, text)

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
    EXPECT_SAYS(fault_of({.server = {"", write("both", certificate + key, 0644), ""}}), "others may read");
}

TEST_F(CredentialFiles, AKeyIsSecretAndHasNoPassphrase) {
    EXPECT_EQ(fault_of_key(key), "no fault");
    EXPECT_SAYS(fault_of_key(key, 0644), "key: others may read or write it");
    for (const char* text :
         {"-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "none", "-----BEGIN CERTIFICATE-----\n",
          "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"})
        EXPECT_SAYS(fault_of_key(text), "key: expected a key (PEM) without a passphrase");
}

TEST_F(CredentialFiles, CertificatesAreCertificates) {
    EXPECT_SAYS(fault_of({.server = {files.path("none")}}), "none: cannot be read: No such file");
    EXPECT_SAYS(fault_of({.server = {write("ca", "none")}}), "ca: expected certificates (PEM)");
}

TEST_F(CredentialFiles, HeadersAreLinesOfNameAndValue) {
    for (const std::string& text :
         {std::string("s3cret"), std::string("X: s3cret\ns3cret\n"), std::string("X:\n"),
          std::string("X: \n"), std::string(": s3cret"), std::string("X Y: s3cret"),
          std::string("X: s3cret\0", 10), std::string("X: s3cret\rY: 1\n"), std::string("X;\n"),
          std::string("@file\n"), std::string("\n\n")}) {
        const std::string fault = fault_of_headers(text);
        EXPECT_SAYS(fault, "expected lines `NAME: VALUE`");
        EXPECT_EQ(fault.find("s3cret"), std::string::npos) << fault;
    }
    EXPECT_SAYS(fault_of_headers("X: 1\nwrong\n"), "headers:2: expected");
    EXPECT_SAYS(fault_of_headers("X: " + std::string(32768, 'x')), "more than 32768 bytes, the limit");
    write("headers", "X: 1\n", 0644);
    EXPECT_SAYS(fault_of({.header_file = files.path("headers")}), "others may read or write it");
}

} // namespace
} // namespace sieve::service
