// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Turns a feed into the keys of an exact set (sieve/exact.h), for an image that was built from the same feed.
#pragma once

#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/image/image.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// Returns distinct keys in ascending order. For a prefix set these are the stored prefixes or keys of the
// image's probes. Feed and image must belong together: a member of the image that is not among the keys would
// never match again. So there must be as many keys as the image says it holds, and its filter must hold each
// of them. Otherwise the error says so and names `feed`. An image's exceptions are no members, so the feed
// may still list them.
Result<std::vector<sieve_key>> exact_keys(Members members, const Image& image, const std::string& feed);

} // namespace sieve
