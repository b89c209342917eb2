// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/random/chance.hpp"

#include <random>

namespace sieve {

double chance() {
    thread_local std::mt19937_64 dice{std::random_device{}()};
    return std::uniform_real_distribution<double>(0, 1)(dice);
}

} // namespace sieve
