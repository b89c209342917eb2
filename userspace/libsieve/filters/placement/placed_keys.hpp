// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells what share of a filter's keys is placed, while several threads place them.
#pragma once

#include <cstddef>
#include <mutex>

#include "libsieve/util/parallel/progress.hpp"

namespace sieve {

class PlacedKeys {
  public:
    /// `all` is the number of keys to place. The progress must outlive this object.
    PlacedKeys(std::size_t all, const Progress& progress) : all_(all), progress_(progress) {}

    /// So many more keys are placed. Any thread may call this.
    void add(std::size_t keys) {
        if (!progress_ || all_ == 0) return;
        const std::lock_guard lock(mutex_);
        placed_ += keys;
        progress_("placing", static_cast<double>(placed_) / static_cast<double>(all_));
    }

  private:
    std::mutex mutex_;
    std::size_t placed_ = 0;
    std::size_t all_;
    const Progress& progress_;
};

} // namespace sieve
