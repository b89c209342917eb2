// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// When to ask a source again. Pure arithmetic: the caller has the clock and the dice.
#pragma once

#include <chrono>
#include <optional>

namespace sieve::service {

struct BackoffLimits {
    std::chrono::milliseconds first{std::chrono::seconds{10}}; // after the first failure, before jitter
    std::chrono::milliseconds most{std::chrono::hours{1}};     // never longer, unless the server asks for it
    std::chrono::milliseconds most_asked_for{std::chrono::hours{1}}; // and then never longer than this
};

// How long to wait after so many failures in a row (at least 1 is assumed). The wait doubles with each
// failure up to `most`. The upper half of it is drawn: `chance` in [0, 1) maps to [wait/2, wait), so that
// many hosts that failed together do not come back together. A server's Retry-After is a lower bound, up to
// nine tenths of `most_asked_for`; jitter of up to a tenth comes on top of it.
[[nodiscard]] std::chrono::milliseconds backoff_delay(unsigned failures, double chance,
                                                      std::optional<std::chrono::seconds> retry_after = {},
                                                      const BackoffLimits& limits = {});

// A refresh interval of which up to `share` is taken away or added at random, evenly: with a share of 0.1,
// `chance` in [0, 1) maps to [0.9, 1.1) of the interval.
[[nodiscard]] std::chrono::milliseconds jittered(std::chrono::milliseconds interval, double chance,
                                                 double share = 0.1);

} // namespace sieve::service
