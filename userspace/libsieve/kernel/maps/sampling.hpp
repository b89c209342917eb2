// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which packets a listener gets.
#pragma once

#include <cstdint>

#include <sieve/policy.h>

namespace sieve::kernel {

struct Sampling {
    std::uint32_t sample = 1; // one packet in so many, at random
    // Which of them: SIEVE_WATCH_EVENTS, SIEVE_WATCH_DEFAULT and SIEVE_WATCH_REJECTED bits.
    std::uint32_t which = SIEVE_WATCH_EVENTS;
};

} // namespace sieve::kernel
