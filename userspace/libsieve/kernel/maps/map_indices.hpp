// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The indices of one of the program's maps-in-maps, and the maps to put there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// A change of some indices of a map-in-map.
struct MapChange {
    std::vector<std::uint32_t> indices; // that get a map
    std::vector<std::uint32_t> ids;     // these maps, in the same order
    std::vector<std::uint32_t> gone;    // indices to be emptied
};

// The change from `present` to `target`: the maps' ids (0: none) at the indices from `first` on. Without
// `present` all indices are written.
[[nodiscard]] MapChange change_of(std::uint32_t first, std::span<const std::uint32_t> present,
                                  std::span<const std::uint32_t> target);

// Puts the maps at their indices. Linux 5.18 and later takes all in one batch, which costs one grace period.
// Older kernels take them one by one, and each costs a grace period.
[[nodiscard]] Status put_maps(int outer_fd, const MapChange& change);

// Empties one index, which may be empty already.
[[nodiscard]] Status clear_map(int outer_fd, std::uint32_t index);

} // namespace sieve::kernel
