// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Makes text from outside safe for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sieve {

// Returns the text with control and non-ASCII bytes escaped as in "\x1b", cut after `longest` bytes. Names
// and labels come from files that anybody may have made, and a terminal obeys some bytes.
[[nodiscard]] std::string printable(std::string_view text, std::size_t longest = 256);

} // namespace sieve
