// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Timed entries as fixed-size records, for files. All numbers are little-endian, as on every supported
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/lists/timed_entry.hpp"

namespace sieve::service::live {

inline constexpr std::size_t timed_entry_record_bytes = 40;

void append_entries(std::string& to, const std::vector<TimedEntry>& timed_entries);

// Takes `count` records, which `from` must have, off its beginning. False if one of them is no timed entry: a
// prefix with an impossible length, or with bits beyond it.
[[nodiscard]] bool take_entries(std::string_view& from, std::uint64_t count, std::vector<TimedEntry>& to);

} // namespace sieve::service::live
