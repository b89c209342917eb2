// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells whether two lists say the same, whatever their order, comments and form.
#pragma once

#include <string>

#include "libsieve/feeds/feed.hpp"

namespace sieve::service {

// 32 hexadecimal digits: the sum of the 128-bit hashes of all keys and ranges, modulo 2^128. The same entries
// in another order have the same digest; an entry that is repeated counts as often as it is repeated. It
// finds changes, and is no defence against somebody who makes two lists of one digest on purpose. Cost: one
// hash of 40 bytes a key.
[[nodiscard]] std::string digest_of_list(const Feed& list);

} // namespace sieve::service
