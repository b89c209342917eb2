// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the header lines of a filter that is in the kernel say of it.
#pragma once

#include <cstdint>

#include <sieve/image.h>

#include "libsieve/util/result.hpp"

namespace sieve::kernel {

struct LiveFilter {
    sieve_lookup lookup{};
    sieve_file file{};
    std::uint64_t bytes = 0; // of the map
};

// Reads the header out of the filter's map.
[[nodiscard]] Result<LiveFilter> read_live_filter(std::uint32_t map_id);

} // namespace sieve::kernel
