// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Codes of origins (timed_entry.hpp) for as long as a process lives. A name has the same code in every
// process unless another name took it first, so a list that was kept over a restart differs from the next
// answer in few entries.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "libsieve/service/lists/decisions.hpp"

namespace sieve::service::live {

class OriginNames {
  public:
    // 0 if every code is taken by other names.
    [[nodiscard]] std::uint8_t code_of(const std::string& name);
    // Empty: no name has the code.
    [[nodiscard]] const std::string& name_of(std::uint8_t code) const { return names_[code]; }

    // Gives the entries of an answer these codes in place of the answer's own.
    void number(Decisions& answer);

  private:
    std::array<std::string, most_origins + 1> names_; // names_[0] stays empty
};

} // namespace sieve::service::live
