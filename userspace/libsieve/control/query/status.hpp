// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is attached and which sets are in force: the state of hooks as a value, for callers that show or
// export it. Reading takes no lock and changes nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// A set in force, with the header of its filter.
struct SetStatus {
    kernel::SetInForce set;
    kernel::FilterHeader filter;
    std::uint64_t exact_bytes = 0; // memory of the exact set; 0 if matches are not verified
    std::uint64_t ending = 0;      // keys that were inserted for a time and have not been taken out yet
    std::uint64_t overdue = 0;     // of these, keys whose time is over
    bool ends_by_itself = false;   // packets look at the time: what is overdue only takes room

    [[nodiscard]] bool verified() const { return set.exact_id != 0; }
    // Bits of the filter's lines per key, without header and witnesses.
    [[nodiscard]] double bits_per_key() const;
    // The filter's present FPR, before verification.
    [[nodiscard]] double expected_rate() const;
    // The image's identity: 32 hexadecimal digits.
    [[nodiscard]] std::string identity() const;
};

// A table in force, with the headers of its filters.
struct TableStatus {
    sieve_action default_action = SIEVE_ACTION_PASS;
    sieve_action replies = SIEVE_ACTION_DROP;    // pass: what would be dropped passes if it answers our flows
    sieve_action unreadable = SIEVE_ACTION_DROP; // what becomes of packets that cannot be read to their end
    std::vector<SetStatus> sets;                 // in their order
    std::optional<std::chrono::nanoseconds> probation{}; // see kernel::TableInForce
    bool taken_back = false;
    sieve_totals baseline{};    // what the table's counters stood at when last reset
    std::uint32_t joint_id = 0; // the joint filter of the sets that share one lookup; 0: none do
};

// A hook where our program runs. If the program speaks another version (hook.other_version says which), only
// `hook` is filled in.
struct HookStatus {
    kernel::Hook hook;
    TableStatus table;
    kernel::Stats stats; // since the program was loaded
    Watching watching;
    std::optional<RepliesState> replies{}; // if the table lets them pass

    // The counters that belong to no set, since they were last reset.
    [[nodiscard]] kernel::Stats counted() const { return kernel::since(stats, table.baseline); }
};

// A hook where somebody else's program runs.
struct ForeignProgram {
    std::string interface;
    kernel::HookPoint point = kernel::HookPoint::xdp;
    std::uint32_t id = 0;
    std::string name; // may be empty
};

struct Overview {
    std::vector<HookStatus> ours;
    std::vector<ForeignProgram> foreign;
};

// The status of all hooks that the name covers; see read_hooks(). It is no error if our program runs nowhere.
[[nodiscard]] Result<Overview> read_status(Kernel& kernel, const HookName& name);

// The table at a hook that speaks our version. If a filter leaves while its header is being read, the table
// is read again.
[[nodiscard]] Result<TableStatus> read_table_status(Kernel& kernel, const kernel::Hook& hook);

} // namespace sieve::control
