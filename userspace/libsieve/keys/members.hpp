// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The members of a set, as a list states them: keys, ranges of addresses, ranges of keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <sieve/image.h>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// All keys of several fields whose addresses lie in ranges and whose other fields have given values. A field
// that is not in `fields` may have any value.
struct KeyRange {
    AddressRange source{};
    AddressRange destination{};
    std::uint64_t transport = 0; // word 4 of the keys; zero where any value will do
    std::uint32_t fields = 0;    // those that matter

    [[nodiscard]] friend constexpr bool operator==(const KeyRange&, const KeyRange&) = default;
};

struct Members {
    explicit Members(std::uint32_t fields) : keys(fields) {}
    Members(KeySet keys, std::vector<AddressRange> ranges, std::vector<KeyRange> key_ranges = {})
        : keys(std::move(keys)), ranges(std::move(ranges)), key_ranges(std::move(key_ranges)) {}

    KeySet keys;
    std::vector<AddressRange> ranges{}; // of a set of one address
    std::vector<KeyRange> key_ranges{}; // of any other set

    [[nodiscard]] std::uint32_t fields() const { return keys.fields(); }
    [[nodiscard]] std::size_t size() const { return keys.size() + ranges.size() + key_ranges.size(); }
    [[nodiscard]] bool empty() const { return size() == 0; }
    [[nodiscard]] bool has_ranges() const { return !ranges.empty() || !key_ranges.empty(); }
};

// What subtract() did to a list.
struct Subtracted {
    std::uint64_t keys = 0;   // that were taken out
    std::uint64_t ranges = 0; // that were cut or taken out
};

// Takes the members of `taken` out of `list`. A range that holds some of them is cut into the ranges of the
// others. bad_input: an entry of the list leaves a field open (`*`) that an entry of `taken` names, so that
// no range can state the rest. Both must have the same fields.
[[nodiscard]] Result<Subtracted> subtract(Members& list, const Members& taken);

// The same keys as prefixes: each line holds one prefix of each address. Distinct and ascending.
[[nodiscard]] std::vector<sieve_exception> prefixes_of(const Members& members);

// Calls `visit` for each pair of prefixes, one of each address, that together make up the range. An address
// that does not matter has the length 0.
void for_each_prefix(const KeyRange& range, const std::function<void(const sieve_exception&)>& visit);

// prefixes_of() reversed: key ranges for a set of several fields, ranges for a set of one address.
[[nodiscard]] Members members_of(std::span<const sieve_exception> prefixes, std::uint32_t fields);

} // namespace sieve
