// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lists that may be empty, such as those of exceptions. Implemented in feed.cpp, by the same reader.
#pragma once

#include <cstdint>
#include <span>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// What read_feed() does; a feed without a key is no error.
[[nodiscard]] Result<Feed> read_feed_if_any(std::span<Input> inputs, std::uint32_t fields,
                                            const FeedOptions& options = {});

} // namespace sieve
