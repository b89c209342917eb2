// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/text/name_some.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace sieve {

std::string name_some(const std::vector<std::string>& names, std::size_t count) {
    const std::size_t named = std::min(names.size(), most_named);
    std::string text =
        fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named), "; "));
    if (count > named) text += fmt::format("; and {} more", count - named);
    return text;
}

} // namespace sieve
