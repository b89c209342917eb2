// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where a list says that keys are members. Implemented in feed.cpp, by the same reader.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// Reads the inputs as read_feed() does and returns for each of the keys where the first entry is that holds
// it: "FILE:LINE"; empty if there is none. Takes time for each key at each entry, so it is meant for a few
// keys. Errors: those of read_feed().
[[nodiscard]] Result<std::vector<std::string>> find_keys(std::span<Input> inputs, const KeySet& keys,
                                                         const FeedOptions& options = {});

} // namespace sieve
