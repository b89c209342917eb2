// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which entry of a set's feeds a key comes from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sieve/key.h>

#include "libsieve/control/set_spec.hpp"

namespace sieve::control {

struct FoundEntry {
    std::string feed{};     // for a message
    std::uint64_t line = 0; // 0: not known
};

// The first entry of the feeds that is the key or covers it. Nothing if there is none, or if the sources
// cannot be read a second time.
[[nodiscard]] std::optional<FoundEntry> find_entry(const SetSpec& set, const sieve_key& key);

// Whether the sources can be read again: they are feeds, and regular files.
[[nodiscard]] bool can_find_entries(const SetSpec& set);

} // namespace sieve::control
