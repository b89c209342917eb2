// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/unknown_command.hpp"

#include <fmt/core.h>

#include "libsieve/util/closest_word.hpp"

namespace sieve::cli {

std::string unknown_command(const std::string& word, const std::vector<std::string>& known) {
    const std::string closest = closest_word(word, known);
    return closest.empty() ? fmt::format("unknown command \"{}\"; see `xdp-sieve --help`", word)
                           : fmt::format("unknown command \"{}\", did you mean {}? See `xdp-sieve --help`",
                                         word, closest);
}

} // namespace sieve::cli
