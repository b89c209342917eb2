// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// SHA-256 and Base64, by OpenSSL. What the fleet names and signs is named by this digest;
// util/files/digest.hpp only tells contents apart that nobody forged.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

class Sha256 {
  public:
    Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;
    ~Sha256();

    void add(std::string_view bytes);
    // The digest of everything added, in 64 hexadecimal digits. Call it once, at the end.
    [[nodiscard]] std::string hex();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

[[nodiscard]] std::string sha256_of(std::string_view bytes);

// The digest of a file from its beginning to its end. Does not move the file's position. bad_input: "cannot
// be read: WHY".
[[nodiscard]] Result<std::string> sha256_of_file(int file);

// Whether the text has the form of a digest: 64 lower-case hexadecimal digits.
[[nodiscard]] bool is_sha256(std::string_view text);

// What people are shown of a digest.
[[nodiscard]] std::string brief(const std::string& digest);

[[nodiscard]] std::string to_base64(std::string_view bytes);
// Nothing for a text that is not padded Base64.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

} // namespace sieve::fleet
