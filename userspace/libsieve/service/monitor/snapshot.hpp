// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What runs in the kernel and what the statistics knows, at one moment: all that metrics, status page and
// status.json are made of. Taking one reads maps and changes nothing that a packet meets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/query/sample.hpp"
#include "libsieve/control/query/top_keys.hpp"
#include "libsieve/service/monitor/process_usage.hpp"
#include "libsieve/service/monitor/statistics.hpp"

namespace sieve::service::watching {

struct SetSnapshot {
    control::SetStatus status{};
    SetTotals totals{};
    std::optional<control::Verified> verified{}; // since the filter went live; nothing if not verified
};

struct HookSnapshot {
    HookId id{};
    control::Sample sample{};
    HookTotals totals{};
    std::vector<SetSnapshot> sets{}; // in their order
    std::optional<control::TopKeys> top_keys{};
};

// An interface that the configuration names in full, at one hook; or any hook of the configuration that is
// paused.
struct WantedHook {
    HookId id{};
    bool up = false;     // our program runs there
    bool paused = false; // by `xdp-sieve pause`
};

struct Snapshot {
    Clock::time_point at{};
    StatisticsCopy record{};
    std::vector<HookSnapshot> hooks{};
    std::vector<WantedHook> wanted{};
    std::optional<std::string> error{}; // why the kernel could not be read; `hooks` is empty then
    Seconds reading{0};                 // how long that took
    ProcessUsage process{};

    [[nodiscard]] const HookSnapshot* find(const HookId& id) const;
};

// `top`: so many of the heaviest keys of each hook where keys are counted.
[[nodiscard]] Snapshot take_snapshot(control::Kernel& kernel, Statistics& statistics, std::size_t top = 0,
                                     Clock::time_point at = Clock::now());

// How often the set's sources are asked: its refresh interval; of a stream, the time between two polls.
[[nodiscard]] std::chrono::seconds asked_every(const SetConfiguration& set);

// When the set's sources last agreed with what is in force, as far as that is known: else when they were last
// read. Nothing if there is no list.
[[nodiscard]] std::optional<Clock::time_point> last_confirmed(const SetHistory& set);

// How many entries its last good list has; nothing if it has none.
[[nodiscard]] std::optional<std::uint64_t> entries_of(const SetHistory& set);

} // namespace sieve::service::watching
