// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The keys that matched most, counted by the sketch in the kernel. Counting costs memory and time, so it is
// off until somebody asks for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/control/in_force.hpp"
#include "libsieve/control/kernel.hpp"
#include "libsieve/control/observer.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

struct TopKey {
    std::string set;
    std::uint32_t fields = 0; // of the set's keys
    sieve_key key{};
    std::uint64_t packets = 0; // never too low
};

struct TopKeys {
    kernel::HookPoint point = kernel::HookPoint::xdp; // the hook that was found
    std::uint64_t since = 0;                          // when counting began, seconds since 1970
    std::uint64_t matches = 0;                        // counted since then
    double error = 0;                                 // packets by which a count may be too high
    double error_chance = 0;                          // the probability that a count is higher than that
    std::vector<TopKey> keys{};                       // the heaviest first

    // Of all matches, between 0 and 1.
    [[nodiscard]] double share(const TopKey& key) const;
};

// Starts counting from zero, if it is off or `reset` says so. True if it began just now.
[[nodiscard]] Result<bool> count_keys(Kernel& kernel, const HookName& name, bool reset,
                                      const Observer& observer);

// Stops counting and frees its memory. Error `no` if it is off.
[[nodiscard]] Status stop_counting_keys(Kernel& kernel, const HookName& name, const Observer& observer);

// The heaviest keys, at most so many, of the sets that are still in force. Error `no` if counting is off.
[[nodiscard]] Result<TopKeys> read_top_keys(Kernel& kernel, const HookName& name, std::size_t most);

} // namespace sieve::control
