// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How deep a configuration nests. The parser, and whoever destroys or prints what it read, call themselves
// for each level, so a short text could have them use up the stack.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "libsieve/service/config/configuration_reader.hpp"

namespace sieve::service {

inline constexpr std::size_t most_key_parts = 32; // of a dotted key; no key of ours has more than six
inline constexpr std::size_t most_brackets = 32;  // that are open at a time

// The first place in a TOML text that is deeper. Nothing: there is none before the first mistake of syntax,
// at which the parser ends.
[[nodiscard]] std::optional<Mistake> find_depth(std::string_view text);

} // namespace sieve::service
