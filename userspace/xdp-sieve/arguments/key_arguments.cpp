// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/key_arguments.hpp"

#include <utility>

#include <sieve/prefix.h>

#include "front-end/console/format.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"

namespace sieve::cli {

namespace {

// As every command reads a list whose format nobody names.
Result<Feed> read_standard_input(std::uint32_t fields, FeedOptions options, const Context& context) {
    options.format = {};
    options.progress = progress_bar(context);
    SIEVE_ASSIGN(Feed feed, read_feed({"-"}, fields, options));
    for (const std::string& decided : feed.decided) remark(context, decided);
    return feed;
}

} // namespace

Result<KeySet> read_key_arguments(const std::vector<std::string>& texts, bool standard_input,
                                  std::uint32_t fields, const Context& context) {
    if (standard_input) {
        SIEVE_ASSIGN(Feed feed, read_standard_input(fields, {}, context));
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
    if (standard_input) {
        SIEVE_ASSIGN(Feed feed,
                     read_standard_input(
                         fields, {.ranges = sieve_is_one_address(fields) != 0, .key_ranges = true}, context));
        return members_of(std::move(feed));
    }
    Members members(fields);
    for (const auto& text : texts) {
        SIEVE_ASSIGN(const MemberText member, parse_member(text, fields));
        add_member(member, members);
    }
    return members;
}

} // namespace sieve::cli
