// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Ends of keys in a table of kind `exact` (sieve/exact_table.h): how many bits of a lane they get, and how
// long a unit of time is.
#pragma once

#include <cstdint>
#include <optional>

#include <sieve/exact_table.h>

#include "libsieve/filters/changeable_table.hpp"

namespace sieve::exact {

inline constexpr std::uint32_t least_bits_of_ends = 6;
inline constexpr std::uint32_t least_unit = 20; ///< 2^20 nanoseconds, a millisecond
inline constexpr std::uint32_t most_unit = 50;  ///< 13 days

/// What the values of a table mean, beside the entries.
struct Values {
    std::uint32_t bits = 0;
    sieve_exact_meaning meaning = SIEVE_EXACT_PLAIN;
    std::uint32_t unit = 0; ///< of ends
    std::uint64_t base = 0; ///< of ends
    std::uint32_t sets = 0; ///< of sets: how many
};

/// How many bits ends get in a table of so many IPv4 addresses: at least 8, as long as they are not what
/// makes it larger by more than a quarter; and as many more as are free in a table of that size.
[[nodiscard]] std::uint32_t bits_for_ends(std::uint64_t ipv4);

/// Ends for lives of at most so many nanoseconds, counted from now. The unit is the shortest one in which a
/// key that comes when half of all units are over can still state the longest life. If it is longer than
/// `longest_unit`, or if the longest life cannot be stated, ends get more bits, up to all that there are.
[[nodiscard]] Values ends_for(std::uint64_t ipv4, std::uint64_t longest, std::uint64_t now,
                              std::uint64_t longest_unit = never_ends);

/// The value of a key that is to end so many nanoseconds after now: the key is a member that long, and at
/// most one unit longer. Nothing if no value states this end. Then the table takes a new base, which is a new
/// table.
[[nodiscard]] std::optional<std::uint32_t> end_of(const Values& ends, std::uint64_t now, std::uint64_t life);

/// The value of a key that does not end.
[[nodiscard]] constexpr std::uint32_t no_end(std::uint32_t bits) {
    return (1U << bits) - 1;
}

/// How long a key with this value still has, in nanoseconds. 0: it has ended. Nothing: it does not end.
[[nodiscard]] std::optional<std::uint64_t> left_of(const Values& ends, std::uint32_t value,
                                                   std::uint64_t now);

/// When the key with this value ends: never, at a time after `now`, or at `now` if it has ended.
[[nodiscard]] std::uint64_t time_of_end(const Values& ends, std::uint32_t value, std::uint64_t now);

/// The value of a key that is to end then: not earlier, and at most one unit later. Nothing if no value
/// states this end.
[[nodiscard]] std::optional<std::uint32_t> value_of_end(const Values& ends, std::uint64_t end);

} // namespace sieve::exact
