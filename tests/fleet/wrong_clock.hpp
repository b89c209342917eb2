// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The time of day as this process sees it. Clocks that only run are not touched.
#pragma once

#include <chrono>

namespace sieve::fleet::test {

class WrongClock {
  public:
    // From here on, the time of day is off by so much.
    static void set(std::chrono::seconds off);
    WrongClock() = default;
    WrongClock(const WrongClock&) = delete;
    WrongClock& operator=(const WrongClock&) = delete;
    ~WrongClock() { set(std::chrono::seconds(0)); }
};

} // namespace sieve::fleet::test
