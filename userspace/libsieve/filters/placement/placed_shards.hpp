// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells what share of a filter's shards is placed, while several threads place them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "libsieve/util/parallel/progress.hpp"

namespace sieve {

class PlacedShards {
  public:
    /// `all` is the number of shards to place, which have about as many keys each. The progress must outlive
    /// this object.
    PlacedShards(std::size_t all, const Progress& progress) : all_(all), progress_(progress) {}

    /// A shard is so many parts.
    static constexpr std::uint32_t parts = 1U << 10;

    /// So many parts of a shard are placed. Any thread may call this.
    void add(std::uint32_t placed = parts) {
        if (!progress_) return;
        const std::lock_guard lock(mutex_);
        placed_ += placed;
        progress_("placing", static_cast<double>(placed_) / (static_cast<double>(all_) * parts));
    }

  private:
    std::mutex mutex_;
    std::uint64_t placed_ = 0;
    std::size_t all_;
    const Progress& progress_;
};

} // namespace sieve
