// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/signing_key.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "libsieve/fleet/servers/sha256.hpp"
#include "service/support.hpp"
#include "unit/messages.hpp"

namespace sieve::fleet {
namespace {

using service::test::Folder;

// RFC 8032, section 7.1, test 2: one byte, 0x72.
constexpr char rfc_public[] = "-----BEGIN PUBLIC KEY-----\n"
                              "MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n"
                              "-----END PUBLIC KEY-----\n";
constexpr char rfc_private[] = "-----BEGIN PRIVATE KEY-----\n"
                               "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
                               "-----END PRIVATE KEY-----\n";
constexpr char rfc_signature[] = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                                 "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

std::string from_hex(const std::string& text) {
    std::string bytes;
    for (std::size_t at = 0; at < text.size(); at += 2)
        bytes += static_cast<char>(std::stoi(text.substr(at, 2), nullptr, 16));
    return bytes;
}

TEST(SigningKeyTest, KnowsItsVectors) {
    const Folder folder;
    const std::string path = folder.write("key", rfc_private);
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    const auto key = SigningKey::read(path);
    ASSERT_TRUE(key) << key.error().message;
    EXPECT_EQ(*key->sign("\x72"), from_hex(rfc_signature));
    const auto open = PublicKey::from_pem(rfc_public, "rfc");
    ASSERT_TRUE(open) << open.error().message;
    EXPECT_EQ(open->id(), key->id());
    EXPECT_TRUE(open->signed_by("\x72", from_hex(rfc_signature)));
    EXPECT_FALSE(open->signed_by("\x73", from_hex(rfc_signature)));
    EXPECT_FALSE(open->signed_by("\x72", from_hex(rfc_signature).substr(1)));
}

TEST(SigningKeyTest, KeepsItsFilesSafe) {
    const Folder folder;
    const auto key = SigningKey::generate();
    ASSERT_TRUE(key) << key.error().message;
    const mode_t before = ::umask(0);
    const Status saved = key->save(folder.path("edge"));
    ::umask(before);
    ASSERT_TRUE(saved) << saved.error().message;
    EXPECT_EQ(std::filesystem::status(folder.path("edge")).permissions(), std::filesystem::perms(0600));
    EXPECT_EQ(std::filesystem::status(folder.path("edge.pub")).permissions(), std::filesystem::perms(0644));
    const auto read = SigningKey::read(folder.path("edge"));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->id(), key->id());
    EXPECT_EQ(PublicKey::read(folder.path("edge.pub"))->id(), key->id());
    // openssl reads them, too.
    folder.shell("openssl pkey -in edge -pubout | cmp - edge.pub");

    const std::string content = folder.read("edge");
    EXPECT_FALSE(key->save(folder.path("edge"))) << "replaced a key";
    std::filesystem::remove(folder.path("edge"));
    EXPECT_FALSE(key->save(folder.path("edge"))) << "replaced a public key";
    EXPECT_FALSE(std::filesystem::exists(folder.path("edge"))) << "half a pair is left";

    for (const mode_t mode : {0640U, 0604U, 0620U}) {
        folder.write("open", content);
        ASSERT_EQ(::chmod(folder.path("open").c_str(), mode), 0);
        expect_error(SigningKey::read(folder.path("open")), ErrorKind::bad_input);
    }
}

TEST(SigningKeyTest, RefusesOtherKeys) {
    const Folder folder;
    folder.shell(
        "umask 077; openssl genpkey -algorithm RSA -out rsa && openssl pkey -in rsa -pubout -out rsa.pub; "
        "openssl genpkey -algorithm ED25519 -aes256 -pass pass:x -out locked; echo nonsense >none; "
        "head -c 100000 /dev/zero >long; mkdir folder");
    for (const char* name : {"rsa", "rsa.pub", "locked", "none", "long", "folder", "missing"}) {
        const auto read = SigningKey::read(folder.path(name));
        ASSERT_FALSE(read) << name;
        expect_error(read, ErrorKind::bad_input);
        EXPECT_FALSE(PublicKey::read(folder.path(name))) << name;
    }
}

} // namespace
} // namespace sieve::fleet
