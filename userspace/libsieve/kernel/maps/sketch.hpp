// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which keys are matched most: the Count-Min sketch in the kernel (sieve/count_min.h), switched and read.
#pragma once

#include <cstdint>
#include <vector>

#include <sieve/count_min.h>

#include "libsieve/kernel/maps/instance.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

struct HeavyKey {
    sieve_key key{}; // the set's fields
    std::uint32_t slot = 0;
    std::uint64_t packets = 0; // never too low
};

struct Tally {
    std::uint64_t since = 0;    // seconds since 1970
    std::uint64_t total = 0;    // N: matches counted
    std::vector<HeavyKey> keys; // the heaviest first
};

// An estimate is too high by more than this share of the total with a probability of at most tally_failure(),
// by Theorem 9.1. The share is chosen so that both are small.
inline constexpr double tally_error = 4.0 / SIEVE_SKETCH_WIDTH;
[[nodiscard]] double tally_failure();

[[nodiscard]] bool is_tallying(const Instance& instance);

// Bytes of kernel memory that counting takes, on this machine.
[[nodiscard]] std::uint64_t tally_bytes();

// Starts counting from zero. The caller holds the Lock.
[[nodiscard]] Status start_tally(const Instance& instance);

// Stops counting and frees the memory. The caller holds the Lock.
[[nodiscard]] Status stop_tally(const Instance& instance);

// The `most` heaviest keys. A key that was matched often is missing only if two heavier ones of the same CPU
// took both of its candidate cells.
[[nodiscard]] Result<Tally> read_tally(const Instance& instance, std::size_t most);

} // namespace sieve::kernel
