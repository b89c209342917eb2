// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the program counted, summed over the CPUs.
#pragma once

#include <array>
#include <cstdint>

#include <sieve/policy.h>

#include "libsieve/kernel/instance.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::kernel {

struct Stats {
    std::array<sieve_counter, SIEVE_SLOTS> hit{}; // since the program was loaded; a LiveSet has its baseline
    sieve_counter dropped{};
    sieve_counter passed{};
    std::array<std::uint64_t, SIEVE_OUTCOMES> outcome{};
};

[[nodiscard]] Result<Stats> read_stats(const Instance& instance);

// later - earlier, in arithmetic modulo 2^64 as the counters are.
[[nodiscard]] sieve_counter difference(const sieve_counter& later, const sieve_counter& earlier);

// The name of an enum sieve_outcome in tables and JSON.
[[nodiscard]] const char* outcome_name(std::uint32_t outcome);

} // namespace sieve::kernel
