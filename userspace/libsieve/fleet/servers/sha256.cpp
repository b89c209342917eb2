// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/servers/sha256.hpp"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <vector>

#include <fmt/format.h>

namespace sieve::fleet {

struct Sha256::State {
    std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)> context{::EVP_MD_CTX_new(), &::EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    // It fails only without memory.
    if (!state_->context || ::EVP_DigestInit_ex(state_->context.get(), ::EVP_sha256(), nullptr) != 1)
        throw std::bad_alloc();
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
    ::EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
}

std::string Sha256::hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    ::EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size);
    std::string text;
    for (unsigned int i = 0; i < size; i++) text += fmt::format("{:02x}", digest[i]);
    return text;
}

std::string sha256_of(std::string_view bytes) {
    Sha256 digest;
    digest.add(bytes);
    return digest.hex();
}

Result<std::string> sha256_of_file(int file) {
    Sha256 digest;
    std::vector<char> block(std::size_t{1} << 16);
    for (off_t at = 0;;) {
        const ssize_t got = ::pread(file, block.data(), block.size(), at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return bad_input("cannot be read: " + errno_text(errno));
        if (got == 0) return digest.hex();
        digest.add({block.data(), static_cast<std::size_t>(got)});
        at += got;
    }
}

bool is_sha256(std::string_view text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string brief(const std::string& digest) {
    constexpr std::size_t shown_digits = 12;
    return digest.substr(0, shown_digits);
}

std::string to_base64(std::string_view bytes) {
    std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0'); // OpenSSL appends a zero
    const int size = ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                       reinterpret_cast<const unsigned char*>(bytes.data()),
                                       static_cast<int>(bytes.size()));
    text.resize(static_cast<std::size_t>(size));
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    std::size_t padding = 0;
    while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') padding++;
    // OpenSSL also takes blanks and padding in the middle.
    const std::string_view digits = text.substr(0, text.size() - padding);
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (text.size() % 4 != 0 || digits.find_first_not_of(alphabet) != std::string_view::npos)
        return std::nullopt;
    std::string bytes(text.size() / 4 * 3, '\0');
    if (text.empty()) return bytes;
    const int size =
        ::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                          reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
    if (size < 0) return std::nullopt;
    bytes.resize(static_cast<std::size_t>(size) - padding);
    // Of the last digit some bits are unused; only zeros are canonical.
    if (to_base64(bytes) != text) return std::nullopt;
    return bytes;
}

} // namespace sieve::fleet
