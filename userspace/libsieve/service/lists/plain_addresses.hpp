// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reads lines that are plain addresses, and nothing else, for the few lines of a followed list that changed.
//
// This is the only reader of a list's text in the process that may load BPF programs. A child costs about 20
// ms, and one more address in a list of a million is to be in force within 50 ms. So the reader is as small
// as it can be: it takes a few KiB of lines, each of which is one address of at most 45 characters, or a
// comment. For anything else a child reads the whole list (sandbox.hpp).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "libsieve/service/lists/timed_entry.hpp"

namespace sieve::service::live {

// So much text is read here at most.
inline constexpr std::size_t most_plain_bytes = std::size_t{64} << 10;

// Appends the addresses of the lines. False if there is more text than that, or a line that is neither an
// address nor a comment; `to` then holds some of the addresses.
[[nodiscard]] bool take_plain_addresses(std::string_view lines, std::vector<Prefix>& to);

} // namespace sieve::service::live
