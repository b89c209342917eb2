// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which format a list has, by its first lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libsieve/feeds/text/list_format.hpp"

namespace sieve {

// The most of a list's beginning that is looked at.
inline constexpr std::size_t format_head_bytes = std::size_t{64} << 10;

struct DetectedSyntax {
    ListSyntax syntax = ListSyntax::plain;
    bool may_be_plain = false; // the list may as well be plain, and would have other entries
};

// The format of a list that begins with these lines. `head` holds whole lines. Text that no other format fits
// is plain, and the plain reader refuses what it does not understand: what looks like one format and is
// another leads to an error, not to other entries.
[[nodiscard]] DetectedSyntax detect_syntax(std::string_view head, std::uint32_t fields);

// True for what servers, proxies and captive portals send when they have no list. No list begins so.
[[nodiscard]] bool looks_like_html(std::string_view begin);

} // namespace sieve
