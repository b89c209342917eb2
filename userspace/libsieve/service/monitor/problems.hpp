// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is wrong in a snapshot, each thing as a sentence for the operator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/service/monitor/snapshot.hpp"

namespace sieve::service::watching {

enum class Severity : std::uint8_t {
    warning, // what is in force is older or less than it should be
    failure, // packets are not judged as the configuration says
};

struct Problem {
    Severity severity = Severity::warning;
    std::string kind{};    // one of the words below, for programs
    std::string subject{}; // "set drop4", "eth0 (xdp)", "configuration"
    std::string text{};
};

// kind: kernel-unreadable, interface-missing, hook-failed, configuration-rejected, cycle-failed,
// list-refused, refresh-failed, list-stale, counters-not-kept; fleet-failed, fleet-refused, fleet-halted,
// fleet-unpublished, fleet-store-away, fleet-etcd-away, fleet-left-over. Failures come first.
[[nodiscard]] std::vector<Problem> problems_of(const Snapshot& snapshot);

// A list is stale if nobody has confirmed it for three refresh intervals, and for five minutes.
[[nodiscard]] bool is_stale(const SetConfiguration& set, const SetHistory& history, Clock::time_point now);

// "eth0 (xdp)"
[[nodiscard]] std::string hook_text(const HookId& hook);

} // namespace sieve::service::watching
