// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where a set's feeds list a key, for messages.
#pragma once

#include <optional>
#include <string>

#include <sieve/key.h>

#include "libsieve/control/spec/set_spec.hpp"

namespace sieve::control {

// The first entry of the feeds that is the key or covers it: "FILE:LINE". Nothing if there is none, or if the
// sources cannot be read a second time.
[[nodiscard]] std::optional<std::string> find_entry(const SetSpec& set, const sieve_key& key);

// Whether the sources can be read again: they are feeds, and regular files.
[[nodiscard]] bool can_find_entries(const SetSpec& set);

} // namespace sieve::control
