// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is attached, and which sets are in force: the state of hooks as a value, for whoever shows or exports
// it. Reading takes no lock and changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/control/in_force.hpp"
#include "libsieve/control/kernel.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

// A set in force, with the header of its filter.
struct SetStatus {
    kernel::SetInForce set;
    kernel::FilterHeader filter;
    std::uint64_t exact_bytes = 0; // memory of the exact set; 0 if matches are not verified

    [[nodiscard]] bool verified() const { return set.exact_id != 0; }
    // Bits of the filter's lines, without header and witnesses, for each key.
    [[nodiscard]] double bits_per_key() const;
    // The filter's FPR as it is now, before verification.
    [[nodiscard]] double expected_rate() const;
    // The image's identity: 32 hexadecimal digits.
    [[nodiscard]] std::string identity() const;
};

// A table in force, with the headers of its filters.
struct TableStatus {
    sieve_action default_action = SIEVE_ACTION_PASS;
    sieve_action unreadable = SIEVE_ACTION_DROP; // what becomes of packets that cannot be read to their end
    std::vector<SetStatus> sets;                 // in their order
};

// A hook where our program runs. If the program speaks another version (hook.other_version says which), only
// `hook` is known.
struct HookStatus {
    kernel::Hook hook;
    TableStatus table;
    kernel::Stats stats; // since the program was loaded
    Watching watching;
};

// A hook that somebody else's program holds.
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

// The status of all hooks that the name covers; see read_hooks(). That our program runs nowhere is no error.
[[nodiscard]] Result<Overview> read_status(Kernel& kernel, const HookName& name);

// The table at a hook that speaks our version. A filter can leave while its header is read; then the table is
// read again.
[[nodiscard]] Result<TableStatus> read_table_status(Kernel& kernel, const kernel::Hook& hook);

} // namespace sieve::control
