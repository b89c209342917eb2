// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is said of keys that an insertion could not put in, where it had put in others.
#pragma once

#include <cstdint>

#include "libsieve/util/results/unfinished.hpp"

namespace sieve::control {

enum class KeysLeft : std::uint8_t {
    refused,     // another try for them was refused
    cannot_grow, // the set has no room for them
};

[[nodiscard]] inline tl::unexpected<Error> keys_left(KeysLeft left, const Error& why) {
    return unfinished(left == KeysLeft::cannot_grow
                          ? "the keys that fitted were put in, but the set could not grow"
                          : "the keys that fitted were put in, and the others were not",
                      why);
}

} // namespace sieve::control
