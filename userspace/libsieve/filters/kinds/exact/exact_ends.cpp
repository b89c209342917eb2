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

std::optional<std::uint32_t> state(std::uint64_t unit, std::uint32_t bits) {
    if (unit > last_unit(bits)) return std::nullopt;
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

Values ends_for(std::uint64_t ipv4, std::uint64_t longest, std::uint64_t now) {
    Values ends{.bits = bits_for_ends(ipv4), .meaning = SIEVE_EXACT_ENDS, .unit = least_unit, .base = now};
    const std::uint64_t half = last_unit(ends.bits) / 2;
    while (ends.unit < most_unit && longest >> ends.unit >= half) ends.unit++;
    return ends;
}

std::optional<std::uint32_t> end_of(const Values& ends, std::uint64_t now, std::uint64_t life) {
    const std::uint64_t since = time_since(ends.base, now);
    if (life > UINT64_MAX - since) return std::nullopt;
    // A key with the value 0 would have ended before the base.
    return state(std::max<std::uint64_t>(1, unit_behind(since + life, ends.unit)), ends.bits);
}

std::optional<std::uint64_t> left_of(const Values& ends, std::uint32_t value, std::uint64_t now) {
    if (value == no_end(ends.bits)) return std::nullopt;
    return time_since(now, ends.base + (std::uint64_t{value} << ends.unit));
}

std::optional<std::uint32_t> translate_end(const Values& from, std::uint32_t value, const Values& to) {
    if (value == no_end(from.bits)) return no_end(to.bits);
    const std::uint64_t end = from.base + (std::uint64_t{value} << from.unit);
    return state(unit_behind(time_since(to.base, end), to.unit), to.bits);
}

} // namespace sieve::exact
