// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The Ed25519 keys of a fleet (RFC 8032, by OpenSSL). A publisher holds a signing key; every node pins the
// public keys that it trusts. Files are PEM, as `openssl pkey` reads and writes them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/util/results/result.hpp"

struct evp_pkey_st;

namespace sieve::fleet {

struct FreeKey {
    void operator()(evp_pkey_st* key) const;
};
using OwnedKey = std::unique_ptr<evp_pkey_st, FreeKey>;

// A key that checks signatures.
class PublicKey {
  public:
    // bad_input unless the text is the PEM of an Ed25519 public key; `name` names it in messages.
    [[nodiscard]] static Result<PublicKey> from_pem(const std::string& text, const std::string& name);
    [[nodiscard]] static Result<PublicKey> read(const std::string& path);

    [[nodiscard]] Result<std::string> pem() const;
    // 16 hexadecimal digits that tell keys apart: the beginning of SHA-256 of the key's 32 bytes.
    [[nodiscard]] const std::string& id() const { return id_; }
    // Whether `signature` (64 bytes) is this key's signature of the message.
    [[nodiscard]] bool signed_by(std::string_view message, std::string_view signature) const;

  private:
    friend class SigningKey;
    PublicKey(OwnedKey key, std::string id) : key_(std::move(key)), id_(std::move(id)) {}
    std::shared_ptr<evp_pkey_st> key_; // never changed, so copies share it
    std::string id_;
};

class SigningKey {
  public:
    // A new key, from the kernel's randomness.
    [[nodiscard]] static Result<SigningKey> generate();
    // bad_input unless the file holds a private Ed25519 key that nobody but its owner can read or write.
    [[nodiscard]] static Result<SigningKey> read(const std::string& path);

    // Writes the private key to `path` (mode 0600) and the public key to `path`.pub (mode 0644). Replaces
    // neither: bad_input if one of them is there.
    [[nodiscard]] Status save(const std::string& path) const;

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] Result<std::string> public_pem() const;
    // The signature of the message: 64 bytes.
    [[nodiscard]] Result<std::string> sign(std::string_view message) const;

  private:
    SigningKey(OwnedKey key, std::string id) : key_(std::move(key)), id_(std::move(id)) {}
    OwnedKey key_;
    std::string id_;
};

} // namespace sieve::fleet
