// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// An order of keys, for sorted lists of them: by their words, the first one first.
#pragma once

#include <algorithm>
#include <iterator>

#include <sieve/key.h>

namespace sieve {

[[nodiscard]] inline bool key_order(const sieve_key& a, const sieve_key& b) {
    return std::lexicographical_compare(std::begin(a.word), std::end(a.word), std::begin(b.word),
                                        std::end(b.word));
}

[[nodiscard]] inline bool same_key(const sieve_key& a, const sieve_key& b) {
    return std::equal(std::begin(a.word), std::end(a.word), std::begin(b.word));
}

} // namespace sieve
