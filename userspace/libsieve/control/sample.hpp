// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the program counted at a moment, and how fast the counters grew between two moments.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/in_force.hpp"
#include "libsieve/control/kernel.hpp"
#include "libsieve/control/status.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

// What verification showed of a filter since that filter came.
struct Verified {
    sieve_verified counted{};
    double expected_rate = 0; // of false positives, as the filter's header says

    // The share of non-members that matched; 0 if none was asked.
    [[nodiscard]] double rate() const;
};

// The counters of one hook at one moment, with the table that they belong to. Counters never fall while
// program_id and, for a set, its baseline stay the same.
struct Sample {
    std::string interface;
    kernel::HookPoint point = kernel::HookPoint::xdp;
    std::uint32_t program_id = 0;
    std::chrono::steady_clock::time_point at;
    TableStatus table;
    kernel::Stats stats; // since the program was loaded

    // All packets, whatever became of them.
    [[nodiscard]] sieve_counter seen() const;
    // Of a set of this sample: its hits since it came.
    [[nodiscard]] sieve_counter hits(const SetStatus& set) const;
    // Of a set of this sample; nothing if its matches are not verified.
    [[nodiscard]] std::optional<Verified> verified(const SetStatus& set) const;
};

// A sample of every hook that the name covers. Without an interface, hooks whose program speaks another
// version are left out, and finding none is no error. With one: not_attached if our program runs at none of
// its hooks, other_version if it is another one.
[[nodiscard]] Result<std::vector<Sample>> take_samples(Kernel& kernel, const HookName& name);

// Growth a second.
struct Rate {
    double packets = 0;
    double bits = 0;
};

struct Rates {
    Rate seen;
    Rate passed;
    Rate dropped;
    Rate redirected;
    std::map<std::string, Rate> sets; // by name; a set that came between the samples has no rate yet
};

// How fast the counters grew up to `now` since `earlier`, samples that were taken before. Nothing if there is
// none of the same program.
[[nodiscard]] std::optional<Rates> rates_since(const std::vector<Sample>& earlier, const Sample& now);

} // namespace sieve::control
