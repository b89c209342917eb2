// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/manifest_fields.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "libsieve/fleet/manifest/fields.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "unit/fleet/sample_manifest.hpp"
#include "unit/messages.hpp"

namespace sieve::fleet {
namespace {

class ManifestFields : public testing::Test {
  protected:
    ManifestFields() : key_(new_key()), manifest_(some_manifest()) {
        pinned_.push_back(public_of(key_));
        manifest_.rollout.on_failure = OnRolloutFailure::rollback;
    }
    // As a publisher that checks nothing would sign it.
    [[nodiscard]] SignedManifest signed_by(const SigningKey& key, const Manifest& manifest) const {
        const std::string text = manifest_text(manifest);
        return {manifest,
                sha256_of(text),
                {key.id()},
                {{key.id(), *key.sign(std::string(signature_context) + text)}}};
    }
    void refused(const SignedManifest& manifest) const {
        expect_error(open_manifest_fields(manifest_fields(manifest), "edge", pinned_), ErrorKind::bad_input);
    }

    SigningKey key_;
    std::vector<PublicKey> pinned_;
    Manifest manifest_;
};

TEST_F(ManifestFields, OpenAsTheyWereSigned) {
    const auto opened = open_manifest_fields(manifest_fields(signed_by(key_, manifest_)), "edge", pinned_);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->manifest, manifest_);
    EXPECT_EQ(opened->digest, manifest_digest(manifest_));
    EXPECT_EQ(opened->signers, std::vector<std::string>{key_.id()});
}

TEST_F(ManifestFields, NothingIsTakenThatWasNotSigned) {
    const SignedManifest right = signed_by(key_, manifest_);
    SignedManifest altered = right;
    altered.manifest.sets[1].digest = sha256_of("another");
    refused(altered);
    altered = right;
    altered.manifest.serial++;
    refused(altered);
    altered = right;
    altered.signatures.clear();
    refused(altered);
    altered = right;
    altered.signatures[0].bytes[7] ^= 1;
    refused(altered);
    const SigningKey stranger = new_key();
    refused(signed_by(stranger, manifest_));
    SignedManifest named = signed_by(stranger, manifest_);
    named.signatures[0].key = key_.id();
    refused(named);
}

TEST_F(ManifestFields, WhatWasSignedIsWithinItsBoundsAndOfThisFleet) {
    Manifest other = manifest_;
    other.fleet = "core";
    refused(signed_by(key_, other));
    Manifest outside = manifest_;
    outside.sets[0].name = "../../etc";
    refused(signed_by(key_, outside));
    outside = manifest_;
    outside.sets[0].digest = "../x";
    refused(signed_by(key_, outside));
}

TEST_F(ManifestFields, PartsAndMoreAreNone) {
    const std::string whole = manifest_fields(signed_by(key_, manifest_));
    for (std::size_t size = 0; size < whole.size(); size++)
        ASSERT_FALSE(open_manifest_fields(whole.substr(0, size), "edge", pinned_)) << size;
    EXPECT_FALSE(open_manifest_fields(whole + '\0', "edge", pinned_));
    // Counts and lengths that nothing stands behind.
    for (std::size_t at = 0; at + 8 <= whole.size(); at += 3) {
        std::string wrong = whole;
        for (std::size_t i = 0; i < 8; i++) wrong[at + i] = '\xff';
        ASSERT_FALSE(open_manifest_fields(wrong, "edge", pinned_)) << at;
    }
}

TEST(Fields, ReadBack) {
    FieldWriter to;
    to.number(~std::uint64_t{0});
    to.text("");
    to.text(std::string("a\0b", 3));
    to.number(7);
    FieldReader from(to.bytes());
    EXPECT_EQ(from.number(), ~std::uint64_t{0});
    EXPECT_EQ(from.text(), "");
    EXPECT_EQ(from.text(), std::string("a\0b", 3));
    EXPECT_FALSE(from.complete());
    EXPECT_EQ(from.number(7), 7U);
    EXPECT_TRUE(from.complete());
    EXPECT_EQ(from.number(), 0U);
    EXPECT_FALSE(from.complete());
}

} // namespace
} // namespace sieve::fleet
