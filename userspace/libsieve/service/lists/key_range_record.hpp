// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Ranges of addresses and of keys as numbers without gaps between them: in files, in digests, and in order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "libsieve/keys/members.hpp"

namespace sieve::service {

// First and last address, each with its lower half first: an AddressRange as it lies in memory.
inline constexpr std::size_t address_range_words = 4;

// The range of a record that anybody may have written. Nothing unless its addresses go upwards, are more than
// one, and of one family.
[[nodiscard]] std::optional<AddressRange>
address_range_of(std::span<const std::uint64_t, address_range_words> record);

inline constexpr std::size_t key_range_words = 10;

// First and last source, first and last destination, each with its upper half first; word 4 of the keys; the
// fields that matter. What does not matter is zero.
using KeyRangeRecord = std::array<std::uint64_t, key_range_words>;

[[nodiscard]] KeyRangeRecord record_of(const KeyRange& range);

// Reversed, of a record that anybody may have written. Nothing unless the range names some of these fields
// and no others, its addresses go upwards and are of one family, and what does not matter is zero.
[[nodiscard]] std::optional<KeyRange> key_range_of(std::span<const std::uint64_t, key_range_words> record,
                                                   std::uint32_t fields);

} // namespace sieve::service
