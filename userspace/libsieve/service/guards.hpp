// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whether a new list is plausible. A list that is not must not go live: a feed that was cut short, became an
// error page or fell into wrong hands harms more than one that is a day old.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/service/configuration.hpp"
#include "libsieve/service/host_addresses.hpp"

namespace sieve::service {

enum class Guard : std::uint8_t {
    empty,
    shrink,
    growth,
    coverage,
    protection,
    lockout, // the table with the new filter would have dropped what the host lives by
};

// "empty", "shrink", "growth", "coverage", "protection" or "lockout".
[[nodiscard]] const char* guard_name(Guard guard);

struct Refusal {
    Guard guard = Guard::empty;
    std::string message; // the set, the rule, the numbers, what to do
};

// Lists that had fewer entries may shrink and grow up to that as they like: there, shares mean nothing.
inline constexpr std::uint64_t small_list = 100;

// What a set that takes packets must not hold, besides its `protect` list.
struct Protection {
    bool takes_packets = false; // a match drops or redirects
    std::vector<HostAddress> host{};
    // What the `protect` lists of the set's interfaces name, as it was written.
    std::vector<std::string> listed{};
};

// The set's, on a host that lives by these addresses.
[[nodiscard]] Protection protection_of(const Configuration& configuration, const SetConfiguration& set,
                                       std::vector<HostAddress> host);

// The first guard that refuses the list. `entries_before` are those of the list in force, if there is one.
[[nodiscard]] std::optional<Refusal> check_list(const SetConfiguration& set, const Feed& list,
                                                std::optional<std::uint64_t> entries_before,
                                                const Protection& protection);

// The guards that need to know only how many entries there are and were.
[[nodiscard]] std::optional<Refusal> check_entries(const SetConfiguration& set, std::uint64_t entries,
                                                   std::uint64_t entries_before);

// What the set must not take, as ranges: those of `protection` and the set's `protect` list.
// Each comes with its names for messages.
enum class ProtectedBy : std::uint8_t {
    host,      // lives by it
    set,       // names it in its `protect` list
    interface, // likewise
};
struct ProtectedRange {
    AddressRange range;
    std::string what;
    std::string text{}; // the range itself
    ProtectedBy by = ProtectedBy::host;
};
[[nodiscard]] std::vector<ProtectedRange> protected_ranges(const SetConfiguration& set,
                                                           const Protection& protection);

// Takes these ranges out of a list of single addresses. Returns those that the list held; none if nothing
// would be left of it, and then the list stays as it was.
[[nodiscard]] Result<std::vector<ProtectedRange>> leave_out_protected(const SetConfiguration& set, Feed& list,
                                                                      const Protection& protection);

// An element of a `protect` list, which was checked when the configuration was read.
[[nodiscard]] AddressRange protected_range(const std::string& text);

// Likewise of a list that is an image: its size, and whether it matches an address that must not be in it.
// What else it matches cannot be seen.
[[nodiscard]] std::optional<Refusal> check_image(const SetConfiguration& set, const Image& image,
                                                 std::optional<std::uint64_t> keys_before,
                                                 const Protection& protection);

// The refusal of a set without any entry.
[[nodiscard]] Refusal empty_list(const SetConfiguration& set);

// Those of the protected ranges that are single addresses. A filter can be asked about them.
[[nodiscard]] std::vector<uint128> protected_addresses(const SetConfiguration& set,
                                                       const Protection& protection);

// Whether the filter takes one of the addresses for a member. In a filter that was just built of a list
// without them this is a false positive, which another build, with other hash keys, does not have.
[[nodiscard]] bool matches_any(const Image& image, std::span<const uint128> addresses);

// Whether guards look at the addresses of the set's list: a key of several fields names flows, not hosts.
[[nodiscard]] bool guards_addresses(const SetConfiguration& set);

} // namespace sieve::service
