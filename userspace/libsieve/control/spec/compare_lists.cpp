// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/compare_lists.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/feeds/text/prefix_text.hpp"

namespace sieve::control {

namespace {

std::vector<std::string> texts_of(Members members) {
    const std::uint32_t fields = members.fields();
    std::vector<sieve_key> keys;
    for (std::size_t i = 0; i < members.keys.size(); i++) keys.push_back(members.keys.at(i));
    members.keys.clear();
    const auto words = [](const sieve_key& key) { return std::to_array(key.word); };
    std::sort(keys.begin(), keys.end(),
              [&](const sieve_key& a, const sieve_key& b) { return words(a) < words(b); });
    keys.erase(std::unique(keys.begin(), keys.end(),
                           [&](const sieve_key& a, const sieve_key& b) { return words(a) == words(b); }),
               keys.end());
    std::vector<std::string> texts;
    for (const sieve_key& key : keys) texts.push_back(format_key(key, fields));
    for (const sieve_exception& prefix : prefixes_of(members)) texts.push_back(format_prefix(prefix, fields));
    return texts;
}

} // namespace

Result<ListDifference> compare_lists(const Members& before, const Members& now) {
    Members gone = before;
    SIEVE_TRY(subtract(gone, now));
    Members added = now;
    SIEVE_TRY(subtract(added, before));
    return ListDifference{.added = texts_of(std::move(added)), .gone = texts_of(std::move(gone))};
}

} // namespace sieve::control
