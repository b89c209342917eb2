// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_ends.hpp"

#include <algorithm>

#include "libsieve/filters/kinds/exact/exact_geometry.hpp"

namespace sieve::exact {

namespace {

constexpr std::uint32_t wanted_bits = 8;

// The last unit that a value states: in the one behind it, which is all ones, keys do not end.
std::uint64_t last_unit(std::uint32_t bits) {
    return (std::uint64_t{1} << bits) - 2;
}

// The first unit that begins at this time after the base or later.
std::uint64_t unit_behind(std::uint64_t since_base, std::uint32_t unit) {
    const std::uint64_t begun = since_base >> unit;
    return begun << unit == since_base ? begun : begun + 1;
}

// From one time to a later one, or 0. Times wrap.
std::uint64_t time_since(std::uint64_t earlier, std::uint64_t later) {
    const std::uint64_t since = later - earlier;
    return static_cast<std::int64_t>(since) > 0 ? since : 0;
}

// The value that says: so long after the base, or up to a unit later. A key with the value 0 would have ended
// before the base.
std::optional<std::uint32_t> value_behind(const Values& ends, std::uint64_t since_base) {
    const std::uint64_t unit = std::max<std::uint64_t>(1, unit_behind(since_base, ends.unit));
    if (unit > last_unit(ends.bits)) return std::nullopt;
    return static_cast<std::uint32_t>(unit);
}

} // namespace

std::uint32_t bits_for_ends(std::uint64_t ipv4) {
    const auto lines = [ipv4](std::uint32_t bits) { return lines_for(best_shape(ipv4, bits), ipv4, bits); };
    std::uint32_t bits = wanted_bits;
    while (bits > least_bits_of_ends && lines(bits) > lines(least_bits_of_ends) * 5 / 4) bits--;
    const std::uint64_t size = lines(bits);
    while (bits < SIEVE_EXACT_MOST_VALUE_BITS && lines(bits + 1) == size) bits++;
    return bits;
}

Values ends_for(std::uint64_t ipv4, std::uint64_t longest, std::uint64_t now, std::uint64_t longest_unit) {
    Values ends{.bits = bits_for_ends(ipv4), .meaning = SIEVE_EXACT_ENDS, .unit = least_unit};
    // A unit less, since the base is up to one before now.
    const auto is_stated = [&] { return longest >> ends.unit < last_unit(ends.bits) / 2 - 1; };
    const auto choose_unit = [&] {
        ends.unit = least_unit;
        while (ends.unit < most_unit && !is_stated()) ends.unit++;
    };
    for (choose_unit(); ends.bits < SIEVE_EXACT_MOST_VALUE_BITS &&
                        (!is_stated() || std::uint64_t{1} << ends.unit > longest_unit);
         choose_unit())
        ends.bits++;
    // A multiple of the unit, so that the next table of this unit states the same ends.
    ends.base = now >> ends.unit << ends.unit;
    return ends;
}

std::optional<std::uint64_t> left_of(const Values& ends, std::uint32_t value, std::uint64_t now) {
    if (value == no_end(ends.bits)) return std::nullopt;
    return time_since(now, ends.base + (std::uint64_t{value} << ends.unit));
}

std::uint64_t time_of_end(const Values& ends, std::uint32_t value, std::uint64_t now) {
    const std::optional<std::uint64_t> left = left_of(ends, value, now);
    return left ? now + *left : never_ends;
}

std::optional<std::uint32_t> value_of_end(const Values& ends, std::uint64_t end) {
    if (end == never_ends) return no_end(ends.bits);
    return value_behind(ends, time_since(ends.base, end));
}

std::optional<std::uint32_t> end_of(const Values& ends, std::uint64_t now, std::uint64_t life) {
    const std::uint64_t since = time_since(ends.base, now);
    if (life > UINT64_MAX - since) return std::nullopt;
    return value_behind(ends, since + life);
}

} // namespace sieve::exact
