// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the program had counted at one moment, and how fast the counters grew between two moments.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/query/status.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// What verification has shown about a filter since that filter went live.
struct Verified {
    sieve_verified counted{};
    double expected_rate = 0; // of false positives, by the filter's header

    // The share of non-members that matched; 0 if none was asked about.
    [[nodiscard]] double rate() const;
};

// The counters of one hook at one moment, with the table that they belong to. The counters never fall while
// program_id stays the same; those of a set also need an unchanged baseline.
struct Sample {
    std::string interface;
    kernel::HookPoint point = kernel::HookPoint::xdp;
    std::uint32_t program_id = 0;
    std::chrono::steady_clock::time_point at;
    TableStatus table;
    kernel::Stats stats;                   // since the program was loaded
    std::optional<RepliesState> replies{}; // if the table lets them pass

    // The counters that belong to no set, since they were last reset.
    [[nodiscard]] kernel::Stats counted() const { return kernel::since(stats, table.baseline); }
    // All packets since then, whatever their verdict.
    [[nodiscard]] sieve_counter seen() const;
    // The hits of a set of this sample since the set went live.
    [[nodiscard]] sieve_counter hits(const SetStatus& set) const;
    // Of these, the packets over the set's limit; nothing if the set has none.
    [[nodiscard]] std::optional<sieve_counter> over(const SetStatus& set) const;
    // What verification showed of a set of this sample; nothing if its matches are not verified.
    [[nodiscard]] std::optional<Verified> verified(const SetStatus& set) const;
};

// A sample of every hook that the name covers. Without an interface, hooks whose program speaks another
// version are left out, and finding no hook is no error. With an interface, the errors are not_attached if
// our program runs at none of its hooks, and other_version if the program there speaks another version.
[[nodiscard]] Result<std::vector<Sample>> take_samples(Kernel& kernel, const HookName& name);

// Growth per second.
struct Rate {
    double packets = 0;
    double bits = 0;
};

struct Rates {
    Rate seen;
    Rate passed;
    Rate dropped;
    Rate redirected;
    std::map<std::string, Rate> sets; // by name; a set that went live between the samples has no rate yet
};

// How fast the counters grew from `earlier`, a previous set of samples, to `now`. Nothing if `earlier` has no
// sample of the same program.
[[nodiscard]] std::optional<Rates> rates_since(const std::vector<Sample>& earlier, const Sample& now);

} // namespace sieve::control
