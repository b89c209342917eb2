// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells whether two contents are the same: XXH3 with 128 bits. The digest detects changes. It does not
// protect against somebody who deliberately makes two contents with the same digest.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace sieve {

class Digest {
  public:
    Digest();
    Digest(Digest&&) noexcept;
    Digest& operator=(Digest&&) noexcept;
    ~Digest();

    void add(std::string_view bytes);

    // The digest of everything added so far, in 32 hexadecimal digits.
    [[nodiscard]] std::string hex() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// The digest of one text.
[[nodiscard]] std::string digest_of(std::string_view text);

} // namespace sieve
