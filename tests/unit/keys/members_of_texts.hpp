// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Members as a list would have them, for tests.
#pragma once

#include <string>
#include <vector>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/keys/members.hpp"

namespace sieve::test {

// Keys, prefixes and ranges from their texts, all of them right.
inline Members members_of_texts(const std::vector<std::string>& texts,
                                std::uint32_t fields = SIEVE_FIELD_SRC) {
    Members members(fields);
    for (const std::string& text : texts) add_member(parse_member(text, fields).value(), members);
    return members;
}

} // namespace sieve::test
