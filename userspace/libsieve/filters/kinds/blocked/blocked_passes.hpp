// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The passes over the keys of one shard of a blocked filter, compiled for several processors: nearly all of
// the builder's time.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sieve/image.h>

#include "libsieve/filters/placement/line_counters.hpp"

namespace sieve {

// What the passes work on: arrays by line of the shard and by key. The keys are in hash_order.
struct BlockedShard {
    const sieve_lookup& lookup;
    std::size_t keys;
    // What a pass needs of each key's hash, and the lines that may hold the key: lookup.choices of them for
    // each, counted from the shard's first. So no pass locates lines again.
    const std::uint64_t* tests;
    const std::uint32_t* places;
    // By key: which of its lines it is in. By line: what is in it, and its rate.
    std::uint8_t* choice;
    LineCounters* lines;
    float* rates;
};

// Puts each key into the line where it adds least to the sum of the lines' rates; ties at random. The lines
// are empty.
void put_keys(const BlockedShard& shard, std::uint64_t seed);

// Looks at each key, and moves it to another of its lines unless that costs too much: Metropolised Gibbs
// sampling, at a temperature in the unit of rates.
void move_keys(const BlockedShard& shard, float temperature, std::uint64_t seed);

} // namespace sieve
