// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The keys of a set in force, as far as the kernel knows them. A filter cannot list its keys; an exact set
// can, and so can the map of the keys that were inserted for a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct ListedKey {
    // Of a prefix set: a prefix in the form of an exact set (sieve/exact.h). If the set changes while it is
    // in force, these are its entries; of kind ranges, the fewest prefixes; else what is stored for them.
    sieve_key key{};
    std::optional<std::int64_t> ends_in{}; // nanoseconds from now; not above 0 if its time is over
    bool hit = false;                      // KeyList::marks: a packet has matched it
};

struct KeyList {
    kernel::HookPoint point = kernel::HookPoint::xdp;
    std::uint32_t fields = 0;
    bool prefixes = false;
    bool marks = false; // packets mark what they match, from when it came, or the set came into force
    bool whole = false; // all keys of the set, as the set is verified; else only those inserted for a time
    // Keys in the filter that nobody knows: their number is all it tells. Of a prefix set, stored prefixes.
    std::uint64_t unlisted = 0;
    std::vector<ListedKey> keys{}; // ascending
};

// Takes no lock: keys that are changed meanwhile may be there or not. Errors: not_attached, no_such_set; `no`
// if no key is known, since the set is not verified and has none that was inserted for a time.
[[nodiscard]] Result<KeyList> list_keys(Kernel& kernel, const HookName& hook, const std::string& set);

// The text of a prefix in the form of an exact set (sieve/exact.h): "192.0.2.0/24"; of several fields, with *
// for a field that is left open: "192.0.2.0/24 443 *".
[[nodiscard]] std::string entry_text(const sieve_key& prefix, std::uint32_t fields);

// The text of a listed key in a feed.
[[nodiscard]] std::string listed_key_text(const ListedKey& key, const KeyList& list);

} // namespace sieve::control
