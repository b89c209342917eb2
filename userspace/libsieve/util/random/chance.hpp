// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Draws for jitter and backoff. They are no secrets.
#pragma once

namespace sieve {

// In [0, 1), evenly. Each thread has dice of its own.
[[nodiscard]] double chance();

} // namespace sieve
