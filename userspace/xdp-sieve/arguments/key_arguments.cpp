// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/key_arguments.hpp"

#include <utility>

#include <sieve/prefix.h>

#include "front-end/console/format.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"

namespace sieve::cli {

Result<KeySet> read_key_arguments(const std::vector<std::string>& texts, bool standard_input,
                                  std::uint32_t fields, const Context& context) {
    if (standard_input) {
        SIEVE_ASSIGN(Feed feed, read_feed({"-"}, fields, {.progress = progress_bar(context)}));
        return std::move(feed.keys);
    }
    KeySet keys(fields);
    for (const auto& text : texts) {
        SIEVE_ASSIGN(const sieve_key key, parse_key(text, fields));
        keys.add(key);
    }
    return keys;
}

Result<Members> read_member_arguments(const std::vector<std::string>& texts, bool standard_input,
                                      std::uint32_t fields, const Context& context) {
    Members members(fields);
    if (standard_input) {
        SIEVE_ASSIGN(Feed feed, read_feed({"-"}, fields,
                                          {.ranges = sieve_is_one_address(fields) != 0,
                                           .key_ranges = true,
                                           .progress = progress_bar(context)}));
        members.keys = std::move(feed.keys);
        members.ranges = std::move(feed.ranges);
        members.key_ranges = std::move(feed.key_ranges);
        return members;
    }
    for (const auto& text : texts) {
        SIEVE_ASSIGN(const MemberText member, parse_member(text, fields));
        add_member(member, members);
    }
    return members;
}

} // namespace sieve::cli
