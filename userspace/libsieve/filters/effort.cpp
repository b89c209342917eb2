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
    return invalid_request(fmt::format("effort `{}`: expected fast, normal or best", text));
}

} // namespace sieve
