// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keys grouped by the regions of the filter that their lines lie in, and the groups ordered so that threads
// do not meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <sieve/image.h>

#include "libsieve/util/huge_array.hpp"

namespace sieve {

// The filter's lines are cut into regions small enough that those of one key fit into a processor's
// second-level cache together (in filters up to some 10^7 keys; larger ones have larger regions). A task is
// all keys whose lines lie in the same two (or three) regions; a step is a set of tasks that have no region
// in common. Tasks of a step may run at once, on any number of threads, and the outcome is that of running
// one after the other.
class LineTasks {
  public:
    // Takes a copy of the keys, grouped. The grouping depends on keys and geometry alone.
    LineTasks(std::span<const sieve_hash> keys, const sieve_lookup& lookup);

    struct Task {
        std::size_t begin = 0; // into keys()
        std::size_t end = 0;
    };

    [[nodiscard]] const HugeArray<sieve_hash>& keys() const { return keys_; }
    [[nodiscard]] std::span<const Task> tasks() const { return tasks_; }
    [[nodiscard]] std::size_t steps() const { return steps_.size(); }

    // The tasks of a step, as indices into tasks().
    [[nodiscard]] std::span<const std::uint32_t> step(std::size_t index) const { return steps_[index]; }

    // The lines of a region, as a power of two.
    [[nodiscard]] std::uint32_t region_shift() const { return shift_; }

    // Calls work(task's index) for all tasks, step by step, in parallel within each; `after` with the number
    // of keys done so far, by one thread at a time.
    void run(const std::function<void(std::uint32_t)>& work,
             const std::function<void(std::size_t)>& after_step) const;

  private:
    void group(std::span<const sieve_hash> keys, const sieve_lookup& lookup);
    void order(std::uint32_t regions, std::uint32_t choices, const std::vector<std::uint32_t>& task_of);

    std::uint32_t shift_ = 0;
    HugeArray<sieve_hash> keys_;
    std::vector<Task> tasks_;
    std::vector<std::vector<std::uint32_t>> steps_;
};

} // namespace sieve
