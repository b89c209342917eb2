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

// What the list has and the other one has not.
Result<Members> without(Members list, const Members& other) {
    // Its message speaks of exceptions, and would send a person after some.
    if (!subtract(list, other))
        return bad_input(
            "an entry of one list names a field that an entry of the other leaves open with * for the "
            "same keys; what came and went cannot be told of such lists");
    return list;
}

} // namespace

Result<ListDifference> compare_lists(const Members& before, const Members& now) {
    SIEVE_ASSIGN(Members gone, without(before, now));
    SIEVE_ASSIGN(Members added, without(now, before));
    return ListDifference{.added = texts_of(std::move(added)), .gone = texts_of(std::move(gone))};
}

} // namespace sieve::control
