// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A filter in the kernel: its map, and the content of its header lines.
#pragma once

#include <cstdint>

#include <sieve/image.h>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

struct FilterHandle {
    UniqueFd fd;
    std::uint32_t lines = 0; // header and witnesses included
};

// Opens a map that a table names. An error if it cannot be a filter map.
[[nodiscard]] Result<FilterHandle> open_live_filter(std::uint32_t map_id);

struct FilterHeader {
    sieve_lookup lookup{};
    sieve_file file{};
    std::uint64_t bytes = 0; // of the map
};

// Reads the header from the filter map.
[[nodiscard]] Result<FilterHeader> read_filter_header(std::uint32_t map_id);

} // namespace sieve::kernel
