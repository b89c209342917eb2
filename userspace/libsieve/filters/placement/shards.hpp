// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Shards: equal parts of a filter, or of each of its subtables, that hold all lines of their keys
// (sieve_same_shard in sieve/image.h). The number of shards is a power of two, so the upper bits of the lower
// half of `locate` are the number of a key's shard, and the keys of a shard lie side by side in hash_order
// (filters/placement/distinct_hashes.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <sieve/image.h>

namespace sieve {

/// A shard has at least this many lines, in all subtables together, unless it is the only one, and less than
/// twice as many. So the lines of a shard with their counters fit into a second-level cache of a megabyte.
/// Fewer lines would make shards more uneven and raise the rate (docs/performance.md).
inline constexpr std::uint32_t least_shard_lines = 2048;

/// The logarithm of the number of shards of a filter with `lines` lines.
std::uint32_t shard_bits_for(std::uint64_t lines);

/// The least number of lines of each subtable that is at least `lines` and makes equal shards: less than a
/// 2048th more if there is one subtable, as much more again for each further one.
std::uint64_t whole_shards(std::uint64_t lines, std::uint32_t subtables = 1);

/// The keys of one shard among 2^bits. `keys` are in hash_order.
std::span<const sieve_hash> keys_of_shard(std::span<const sieve_hash> keys, std::uint32_t bits,
                                          std::uint32_t shard);

/// ", 4 shards of 2500 lines" for a filter of 10,000 lines in all; empty if there is one shard.
std::string shards_in_words(const sieve_lookup& lookup, std::uint64_t lines);

} // namespace sieve
