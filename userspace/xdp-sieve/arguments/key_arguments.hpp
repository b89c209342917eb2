// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keys as commands take them: as arguments, or as a feed on standard input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/keys/key_set.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/results/result.hpp"
#include "xdp-sieve/arguments/context.hpp"

namespace sieve::cli {

// The keys in `texts`, or those on standard input if `standard_input` is set.
[[nodiscard]] Result<KeySet> read_key_arguments(const std::vector<std::string>& texts, bool standard_input,
                                                std::uint32_t fields, const Context& context);

// The same for a set that may hold prefixes: prefixes and ranges of addresses are taken, too, and * among
// several fields.
[[nodiscard]] Result<Members> read_member_arguments(const std::vector<std::string>& texts,
                                                    bool standard_input, std::uint32_t fields,
                                                    const Context& context);

} // namespace sieve::cli
