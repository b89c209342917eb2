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
#include "libsieve/filters/prefixes/address_set.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/service/state/refusals.hpp"

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
    std::string message;               // the set, the rule, the numbers, what to do
    std::optional<RefusedList> list{}; // what a person may accept (acceptance.hpp)
    std::string accept{};              // the command that does; empty: none
};

// Lists that had fewer entries may shrink and grow up to that as they like: there, shares mean nothing.
inline constexpr std::uint64_t small_list = 100;

// The addresses that a list covers, each counted once.
struct Extent {
    double addresses[SIEVE_FAMILIES] = {0, 0};
    std::uint64_t ranges = 0; // disjoint, and not adjacent
};

[[nodiscard]] Extent extent_of(const AddressSet& addresses);
// Of a list of single addresses.
[[nodiscard]] AddressSet addresses_of(const Feed& list);
// Of an image: what its filter holds, whatever its header says. Nothing if its kind cannot list its
// addresses, or if its lines are not those of a builder.
[[nodiscard]] std::optional<Extent> extent_of(const Image& image);

// How large a list is. Growth and shrinkage look at two of these.
struct ListSize {
    std::uint64_t entries =
        0; // of a list; of an image the ranges that it holds, or else the keys that it states
    bool image = false;
    std::optional<Extent> extent{}; // of single addresses, where it can be known
};

// Few addresses: a list that covered fewer may shrink and grow up to that as it likes. The entries of lists
// are counted as well. Of an image only addresses count, so it has less freedom: a hundred addresses, or a
// hundred /64s.
struct FewAddresses {
    double of_family[SIEVE_FAMILIES];
};
inline constexpr FewAddresses few_of_lists{{0x1p16, 0x1p96}}; // a /16; a /32
inline constexpr FewAddresses few_of_images{{small_list, small_list * 0x1p64}};

// What a set that takes packets must not hold, besides its `protect` list.
struct Protection {
    bool takes_packets = false;  // a match drops or redirects
    bool passes_packets = false; // a match passes, so a member that is left out may be dropped
    std::vector<HostAddress> host{};
    // What the `protect` lists of the set's interfaces name, as it was written.
    std::vector<std::string> listed{};
};

// The set's, on a host that lives by these addresses.
[[nodiscard]] Protection protection_of(const Configuration& configuration, const SetConfiguration& set,
                                       std::vector<HostAddress> host);

// Whether a person has accepted the list: then only its protected addresses are looked at.
enum class Accepted : std::uint8_t { no, yes };

// The first guard that refuses the list. `before` is the list in force, if there is one.
[[nodiscard]] std::optional<Refusal> check_list(const SetConfiguration& set, const Feed& list,
                                                const std::optional<ListSize>& before,
                                                const Protection& protection,
                                                Accepted accepted = Accepted::no);

// How large the list is, with what it covers if guards look at that.
[[nodiscard]] ListSize size_of(const SetConfiguration& set, const Feed& list);

// The guards that need to know only how large the lists are.
[[nodiscard]] std::optional<Refusal> check_size(const SetConfiguration& set, const ListSize& now,
                                                const ListSize& before);

// What the set must not take, as ranges: those of `protection` and the set's `protect` list. Under a
// condition, the host's addresses are left out whose packets may not meet it. Each comes with its names for
// messages.
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

// Likewise of a list that is an image. One whose filter lists its addresses is judged by these, as a list is.
// Any other is a filter that cannot say what it holds. It is refused, unless somebody is `trusted` with it or
// the set's guards allow it (GuardLimits::unchecked_images). Then the guards look at what can be seen: the
// number of keys that the header states, the share of random addresses that match, protected addresses, and
// whether more of a protected prefix matches than false positives explain.
[[nodiscard]] std::optional<Refusal> check_image(const SetConfiguration& set, const Image& image,
                                                 const std::optional<ListSize>& before,
                                                 const Protection& protection, bool trusted,
                                                 Accepted accepted = Accepted::no);

// The size of an image that is a list.
[[nodiscard]] ListSize size_of(const Image& image);

// The refusal of a set without any entry.
[[nodiscard]] Refusal empty_list(const SetConfiguration& set);

// Those of the protected ranges that are single addresses. A filter can be asked about them.
[[nodiscard]] std::vector<uint128> protected_addresses(const SetConfiguration& set,
                                                       const Protection& protection);

// Whether the filter takes one of the addresses for a member. In a filter that was just built of a list
// without them this is a false positive, which another build, with other hash keys, does not have.
[[nodiscard]] bool matches_any(const Image& image, std::span<const uint128> addresses);

} // namespace sieve::service
