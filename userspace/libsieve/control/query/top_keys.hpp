// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The keys that matched most, as the kernel's sketch counts them. Counting takes memory and time, so it is
// off until somebody asks for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct TopKey {
    std::string set;
    std::uint32_t fields = 0; // that the set's keys have
    sieve_key key{};
    std::uint64_t packets = 0; // never below the truth
};

struct TopKeys {
    kernel::HookPoint point = kernel::HookPoint::xdp; // the hook where counting runs
    std::uint64_t since = 0;                          // the start of counting, in seconds since 1970
    std::uint64_t matches = 0;                        // counted since then
    double error = 0;                                 // packets by which a count may be too high
    double error_chance = 0;    // the probability that a count is too high by more than that
    std::vector<TopKey> keys{}; // heaviest first

    // The key's share of all matches, between 0 and 1.
    [[nodiscard]] double share(const TopKey& key) const;
};

// Starts counting from zero if counting is off or `reset` is set. Returns true if it started just now.
[[nodiscard]] Result<bool> count_keys(Kernel& kernel, const HookName& name, bool reset,
                                      const Observer& observer);

// Stops counting and frees the memory that it took. Error `no` if counting is off.
[[nodiscard]] Status stop_counting_keys(Kernel& kernel, const HookName& name, const Observer& observer);

// The `most` heaviest keys of the sets that are still in force. Error `no` if counting is off.
[[nodiscard]] Result<TopKeys> read_top_keys(Kernel& kernel, const HookName& name, std::size_t most);

} // namespace sieve::control
