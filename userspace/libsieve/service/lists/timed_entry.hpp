// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One reason why an address or a prefix is on a list: a decision, or a line of a file.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "libsieve/keys/address_range.hpp"

namespace sieve::service::live {

// Wall-clock time, because expiry outlives this process.
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

[[nodiscard]] inline Time current_time() {
    return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

inline constexpr Time never = Time(std::chrono::milliseconds(std::numeric_limits<std::int64_t>::max()));

// An address, or the addresses that share its first bits. The other bits are zero.
struct Prefix {
    uint128 address = 0;
    std::uint8_t length = 128; // of 128 bits: an IPv4 /24 is 120

    [[nodiscard]] bool is_single() const { return length == 128; }
    [[nodiscard]] uint128 host_bits() const; // ones beyond the length
    [[nodiscard]] AddressRange range() const;
    [[nodiscard]] friend bool operator==(const Prefix&, const Prefix&) = default;
};

// Differs from process to process: a hostile list must not choose where its entries go.
struct PrefixHash {
    std::size_t operator()(const Prefix& prefix) const;
};

// "192.0.2.7" or "192.0.2.0/24".
[[nodiscard]] std::string prefix_text(const Prefix& prefix);

// The same prefix may have several timed entries; it stays on the list until the last of them has gone. Each
// is found by a walk past the others, so they should be few.
struct TimedEntry {
    Prefix prefix;
    std::uint64_t id = 0; // tells one timed entry of a prefix from another: entry_id() of a decision
    Time until = never;

    [[nodiscard]] friend bool operator==(const TimedEntry&, const TimedEntry&) = default;
};

// The number of a decision, below decision_numbers, and the code of the origin that decided (0: none is
// known), in one word: a list of many decisions has no room for more.
inline constexpr int origin_shift = 56;
inline constexpr std::uint64_t decision_numbers = std::uint64_t{1} << origin_shift;
[[nodiscard]] constexpr std::uint64_t entry_id(std::uint64_t number, std::uint8_t origin) {
    return std::uint64_t{origin} << origin_shift | number;
}
[[nodiscard]] constexpr std::uint64_t number_of(std::uint64_t id) {
    return id & (decision_numbers - 1);
}
[[nodiscard]] constexpr std::uint8_t origin_of(std::uint64_t id) {
    return static_cast<std::uint8_t>(id >> origin_shift);
}

// A list has a part for each of its set's sources of another sort. A source that says its whole list says
// what is in its part, and nothing of the others.
enum class Part : std::uint8_t {
    followed, // CrowdSec's decisions, or the lines of files that are followed in place
    bans,
    lists, // of all lists that are read as a whole, beside decisions or bans
};
// Codes in the place of an origin's.
inline constexpr std::uint8_t ban_origin = 254;
inline constexpr std::uint8_t list_origin = 255;
[[nodiscard]] constexpr Part part_of(std::uint64_t id) {
    const std::uint8_t origin = origin_of(id);
    return origin == list_origin ? Part::lists : origin == ban_origin ? Part::bans : Part::followed;
}

// What comes and what goes, in this order: first all of `removed`, then all of `added`.
struct EntryChange {
    std::vector<TimedEntry> removed; // their `until` means nothing
    std::vector<TimedEntry> added;   // a timed entry that is there already gets a new `until`

    [[nodiscard]] bool empty() const { return removed.empty() && added.empty(); }
};

} // namespace sieve::service::live
