// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/placement/shards.hpp"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "libsieve/util/text/counted.hpp"

namespace sieve {

std::uint32_t shard_bits_for(std::uint64_t lines) {
    return static_cast<std::uint32_t>(std::bit_width(std::max<std::uint64_t>(1, lines / least_shard_lines)) -
                                      1);
}

std::uint64_t whole_shards(std::uint64_t lines, std::uint32_t subtables) {
    for (;;) {
        const std::uint32_t bits = shard_bits_for(lines * subtables);
        lines = (((lines - 1) >> bits) + 1) << bits;
        if (shard_bits_for(lines * subtables) == bits) return lines;
    }
}

std::span<const sieve_hash> keys_of_shard(std::span<const sieve_hash> keys, std::uint32_t bits,
                                          std::uint32_t shard) {
    const auto first_of = [&](std::uint64_t number) {
        const std::uint64_t least = number
                                    << (32 - bits); // 64 bits: the shard behind the last one begins at 2^32
        return std::partition_point(keys.begin(), keys.end(), [least](const sieve_hash& hash) {
            return (hash.locate & 0xffffffff) < least;
        });
    };
    return {first_of(shard), first_of(std::uint64_t{shard} + 1)};
}

std::string shards_in_words(const sieve_lookup& lookup, std::uint64_t lines) {
    if (lookup.shard_bits == 0) return {};
    return fmt::format(", {} shards of {}", 1U << lookup.shard_bits,
                       counted(lines >> lookup.shard_bits, "line"));
}

} // namespace sieve
