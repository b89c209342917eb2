// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What people tell files by.
#pragma once

#include <string_view>

namespace sieve {

// The last name of a path or URL, with the folder before it: "lists/bad.txt". Two lists of the same name are
// told apart by their folders.
[[nodiscard]] constexpr std::string_view short_path(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos || slash == 0 || slash + 1 == path.size()) return path;
    const std::size_t before = path.rfind('/', slash - 1);
    return before == std::string_view::npos ? path : path.substr(before + 1);
}

} // namespace sieve
