// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The keys of a feed as verification looks them up (sieve/exact.h), for an image that was built of them.
#pragma once

#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/image/image.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

// Distinct and in ascending order; of a prefix set the expanded prefixes, at the image's lengths. A member of
// the image that is not among the keys would never match again, so the two must belong together: as many keys
// as the image says it holds, and each of them in its filter. Else the error says so, naming `feed`.
Result<std::vector<sieve_key>> exact_keys(const KeySet& keys, const std::vector<AddressRange>& ranges,
                                          const Image& image, const std::string& feed);

} // namespace sieve
