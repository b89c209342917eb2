// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/signing_key.hpp"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/util/system/small_file.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::fleet {

void FreeKey::operator()(evp_pkey_st* key) const {
    ::EVP_PKEY_free(key);
}

namespace {

using Bio = std::unique_ptr<BIO, decltype(&::BIO_free)>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)>;

constexpr std::size_t key_bytes = 32;
constexpr std::size_t signature_bytes = 64;
constexpr std::size_t longest_key_file = 64 << 10;
constexpr std::size_t id_digits = 16;

// A key with a passphrase is refused; OpenSSL would ask for it on the terminal.
int no_passphrase(char*, int, int, void*) {
    return -1;
}

Bio reader_of(const std::string& text) {
    return {::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &::BIO_free};
}

// Empty for a key of another algorithm.
std::string id_of(const EVP_PKEY* key) {
    std::array<unsigned char, key_bytes> raw{};
    std::size_t size = raw.size();
    if (::EVP_PKEY_get_id(key) != EVP_PKEY_ED25519 ||
        ::EVP_PKEY_get_raw_public_key(key, raw.data(), &size) != 1 || size != raw.size())
        return {};
    return sha256_of({reinterpret_cast<const char*>(raw.data()), raw.size()}).substr(0, id_digits);
}

// `write` writes to a BIO in memory.
template <class Write>
Result<std::string> pem_by(Write write) {
    const Bio memory(::BIO_new(::BIO_s_mem()), &::BIO_free);
    if (!memory || write(memory.get()) != 1)
        return failure(ErrorKind::out_of_memory, "a key cannot be written as text");
    char* text = nullptr;
    const long size = ::BIO_get_mem_data(memory.get(), &text);
    return std::string(text, static_cast<std::size_t>(size));
}

Result<UniqueFd> open_key(const std::string& path, struct stat& info) {
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file || ::fstat(file.get(), &info) != 0)
        return bad_input(fmt::format("{}: cannot be read: {}", printable(path), errno_text(errno)));
    if (!S_ISREG(info.st_mode))
        return bad_input(fmt::format("{}: expected the file of a key", printable(path)));
    return file;
}

Status write_new(const std::string& path, const std::string& text, mode_t mode) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file && errno == EEXIST)
        return bad_input(fmt::format("{}: is there already, and a key is never replaced", printable(path)));
    if (!file) return bad_input(fmt::format("{}: cannot be made: {}", printable(path), errno_text(errno)));
    Status written = write_all(file.get(), text);
    // Whatever the umask took away or an access list of the folder added.
    if (written && (::fchmod(file.get(), mode) != 0 || ::fsync(file.get()) != 0))
        written = bad_input("cannot be written: " + errno_text(errno));
    if (written) return {};
    (void)::unlink(path.c_str());
    return bad_input(fmt::format("{}: {}", printable(path), written.error().message));
}

} // namespace

Result<PublicKey> PublicKey::from_pem(const std::string& text, const std::string& name) {
    const Bio bio = reader_of(text);
    OwnedKey key(bio ? ::PEM_read_bio_PUBKEY(bio.get(), nullptr, no_passphrase, nullptr) : nullptr);
    std::string id = key ? id_of(key.get()) : std::string();
    if (id.empty())
        return bad_input(
            fmt::format("{}: expected the public key of a fleet (Ed25519, PEM)", printable(name)));
    return PublicKey(std::move(key), std::move(id));
}

Result<PublicKey> PublicKey::read(const std::string& path) {
    struct stat info {};
    SIEVE_ASSIGN(const UniqueFd file, open_key(path, info));
    SIEVE_ASSIGN(const std::string text, read_small_file(file.get(), path, longest_key_file));
    return from_pem(text, path);
}

Result<std::string> PublicKey::pem() const {
    return pem_by([this](BIO* bio) { return ::PEM_write_bio_PUBKEY(bio, key_.get()); });
}

bool PublicKey::signed_by(std::string_view message, std::string_view signature) const {
    const Context context(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free);
    return context && signature.size() == signature_bytes &&
           ::EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
           ::EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                              signature.size(), reinterpret_cast<const unsigned char*>(message.data()),
                              message.size()) == 1;
}

Result<SigningKey> SigningKey::generate() {
    OwnedKey key(::EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
    std::string id = key ? id_of(key.get()) : std::string();
    if (id.empty()) return failure(ErrorKind::out_of_memory, "OpenSSL makes no Ed25519 key");
    return SigningKey(std::move(key), std::move(id));
}

Result<SigningKey> SigningKey::read(const std::string& path) {
    struct stat info {};
    SIEVE_ASSIGN(const UniqueFd file, open_key(path, info));
    if ((info.st_mode & 077) != 0)
        return bad_input(fmt::format("{}: others may read or write it (mode {:o}), expected mode 600",
                                     printable(path), info.st_mode & 07777));
    SIEVE_ASSIGN(const std::string text, read_small_file(file.get(), path, longest_key_file));
    const Bio bio = reader_of(text);
    OwnedKey key(bio ? ::PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr) : nullptr);
    std::string id = key ? id_of(key.get()) : std::string();
    if (id.empty())
        return bad_input(fmt::format("{}: expected a private key of a fleet (Ed25519, PEM, no passphrase)",
                                     printable(path)));
    return SigningKey(std::move(key), std::move(id));
}

Result<std::string> SigningKey::public_pem() const {
    return pem_by([this](BIO* bio) { return ::PEM_write_bio_PUBKEY(bio, key_.get()); });
}

Status SigningKey::save(const std::string& path) const {
    SIEVE_ASSIGN(const std::string secret, pem_by([this](BIO* bio) {
                     return ::PEM_write_bio_PrivateKey(bio, key_.get(), nullptr, nullptr, 0, nullptr,
                                                       nullptr);
                 }));
    SIEVE_ASSIGN(const std::string open, public_pem());
    SIEVE_TRY(write_new(path, secret, 0600));
    if (Status written = write_new(path + ".pub", open, 0644); !written) {
        (void)::unlink(path.c_str());
        return written;
    }
    return {};
}

Result<std::string> SigningKey::sign(std::string_view message) const {
    const Context context(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free);
    std::string signature(signature_bytes, '\0');
    std::size_t size = signature.size();
    if (!context || ::EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
        ::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                         reinterpret_cast<const unsigned char*>(message.data()), message.size()) != 1 ||
        size != signature.size())
        return failure(ErrorKind::out_of_memory, "OpenSSL makes no signature");
    return signature;
}

} // namespace sieve::fleet
