// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Checks a filter that another process has built, and that may mean harm.
#pragma once

#include "libsieve/build/exceptions.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// Whether the image is what build_set() makes of these members with these options and exceptions, but for its
// random hash keys. The image must have passed its own check. Works everything out again except where keys
// go: kind, size and geometry; the number of keys, the sum of their hashes, probes and coverage. Asks the
// filter for each stored key. Its rate must be that of its bits, those of the prediction, and that of 65,536
// random keys, which have the shapes of members. An exact filter that lists its addresses must list the
// members and nothing else.
//
// What it cannot see: which non-members match, as long as they are no more than the rate allows.
//
// Cost: hashing and sorting the keys, a lookup for each, and a pass over the filter's lines. Defined beside
// the builder (set_builder.cpp), whose steps it repeats. bad_input says what differs.
[[nodiscard]] Status check_built(const Image& image, Members members, const BuildOptions& options,
                                 const Exceptions& exceptions);

} // namespace sieve
