// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/unknown_command.hpp"

#include <fmt/core.h>

#include "libsieve/util/text/closest_word.hpp"

namespace sieve::cli {

std::string unknown_command(const std::string& word, const std::vector<std::string>& known) {
    // A slip of the fingers must not end in a command that takes protection away.
    std::vector<std::string> harmless = known;
    std::erase_if(harmless, [](const std::string& name) {
        return name == "unload" || name == "remove" || name == "delete" || name == "pause";
    });
    const std::string closest = closest_word(word, harmless);
    return closest.empty() ? fmt::format("unknown command \"{}\"; see `xdp-sieve --help`", word)
                           : fmt::format("unknown command \"{}\", did you mean {}? See `xdp-sieve --help`",
                                         word, closest);
}

} // namespace sieve::cli
