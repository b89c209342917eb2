// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/text/printable.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace sieve {

bool has_control(std::string_view text) {
    return std::ranges::any_of(text, is_control);
}

std::string printable(std::string_view text, std::size_t longest) {
    std::string out;
    for (char c : text.substr(0, longest)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\t')
            out += "\\t";
        else if (byte < 0x20 || byte >= 0x7f)
            out += fmt::format("\\x{:02x}", byte);
        else
            out += c;
    }
    if (text.size() > longest) out += "...";
    return out;
}

} // namespace sieve
