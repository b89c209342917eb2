// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/effort.hpp"

#include <fmt/core.h>

namespace sieve {

const char* effort_name(Effort effort) {
    switch (effort) {
    case Effort::fast:
        return "fast";
    case Effort::normal:
        return "normal";
    case Effort::best:
        return "best";
    }
    return "unknown";
}

Result<Effort> parse_effort(const std::string& text) {
    for (const Effort effort : {Effort::fast, Effort::normal, Effort::best})
        if (text == effort_name(effort)) return effort;
    return usage_error(fmt::format("effort `{}`: expected fast, normal or best", text));
}

std::uint32_t rounds_for(Effort effort, std::uint32_t kind, std::uint32_t choices) {
    if (effort == Effort::fast) return 0;
    const bool best = effort == Effort::best;
    switch (kind) {
    case SIEVE_KIND_BLOCKED:
        // A third line takes more rounds to make use of: each proposes but one of the other two.
        return best ? 64 : choices > 2 ? 24 : 16;
    case SIEVE_KIND_BLOOM:
        return best ? 100 : 40;
    default:
        return best ? 64 : 16;
    }
}

} // namespace sieve
