// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Text from outside: what in it controls a terminal, and the text without it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sieve {

// A byte that no line of text has: a control character, line breaks and tabs among them.
[[nodiscard]] constexpr bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}
[[nodiscard]] bool has_control(std::string_view text);

// Returns the text with control and non-ASCII bytes escaped as in "\x1b", cut after `longest` bytes. Names
// and labels come from files that anybody may have made, and a terminal obeys some bytes.
[[nodiscard]] std::string printable(std::string_view text, std::size_t longest = 256);

} // namespace sieve
