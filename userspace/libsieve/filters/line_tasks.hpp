// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Groups keys by the regions of the filter that hold their lines, and orders the groups so that threads never
// work on the same region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <sieve/image.h>

#include "libsieve/util/huge_array.hpp"

namespace sieve {

// The filter's lines are cut into regions. Regions are so small that the regions of one key fit together into
// a processor's second-level cache (for filters of up to some 10^7 keys; larger filters have larger regions).
// All regions have the same size, to within a line or two. A shorter region would fill up before the others,
// and the online rule, which cannot look ahead, would then up to double the false positive rate.
//
// A task is the set of all keys whose lines lie in the same two (or three) regions. A step is a set of tasks
// that have no region in common. The tasks of a step may run at once on any number of threads; the result is
// the same as running them one after another.
class LineTasks {
  public:
    // Copies the keys and groups them. The grouping depends on keys and geometry alone.
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

    [[nodiscard]] std::uint32_t regions() const { return regions_; }
    // The region that a line lies in.
    [[nodiscard]] std::uint32_t region(std::uint32_t line) const {
        return static_cast<std::uint32_t>(line * scale_ >> scale_bits);
    }

    // Calls work(index of the task) for all tasks: step by step, and in parallel within each step. Calls
    // `after_step` after each step, from one thread, with the number of keys done so far.
    void run(const std::function<void(std::uint32_t)>& work,
             const std::function<void(std::size_t)>& after_step) const;

  private:
    void group(std::span<const sieve_hash> keys, const sieve_lookup& lookup);
    void order(std::uint32_t choices, const std::vector<std::uint32_t>& task_of);

    static constexpr std::uint32_t scale_bits = 48;
    std::uint32_t regions_ = 1;
    std::uint64_t scale_ = 0; // regions per line, in units of 2^-scale_bits
    HugeArray<sieve_hash> keys_;
    std::vector<Task> tasks_;
    std::vector<std::vector<std::uint32_t>> steps_;
};

} // namespace sieve
