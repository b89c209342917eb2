// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The sets of an instance and their order: read, and changed in one step that no packet sees half of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sieve/policy.h>

#include "libsieve/kernel/instance.hpp"
#include "libsieve/util/result.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve::kernel {

// A set in force.
struct LiveSet {
    std::string name;
    sieve_action action = SIEVE_ACTION_DROP;
    std::uint32_t slot = 0;   // index of its counters
    std::uint32_t map_id = 0; // its filter; 0 if its slot is empty, which no change by a SetTable leaves
    sieve_counter baseline{}; // what its counters stood at when it came
};

// All sets in force, in the order they are asked.
struct LiveTable {
    sieve_action default_action = SIEVE_ACTION_PASS;
    std::vector<LiveSet> sets;

    [[nodiscard]] const LiveSet* find(std::string_view name) const;
};

// A set as it shall be: a set of that name keeps its counters, a new name's start at zero.
struct WantedSet {
    std::string name;
    sieve_action action = SIEVE_ACTION_DROP;
    int map_fd = -1; // of a FilterMap; -1 keeps the filter of the set that has the name now
};

struct WantedTable {
    sieve_action default_action = SIEVE_ACTION_PASS;
    std::vector<WantedSet> sets;
};

// 1 to 31 letters, digits, dots, underscores and dashes.
[[nodiscard]] bool is_set_name(std::string_view name);

// Changes go by the two banks of sieve/policy.h, under this invariant: at rest both banks are equal (the same
// filters, the same policy), and equal banks mean that no packet is still using the bank that is not active.
// The caller holds the Lock.
//
// A change first writes what differs to the bank that is not active, then flips `active` by one aligned
// store, then waits for a grace period and makes the other bank equal again, which is what drops the last
// reference to a filter that left. A controller that dies on the way leaves the running program with one
// whole bank, the old or the new, and banks that differ; whoever comes next waits for a grace period (for the
// packets that may have seen the bank the dead one was leaving) and makes them equal, before anything else.
class SetTable {
  public:
    explicit SetTable(const Instance& instance) : instance_(&instance) {}

    [[nodiscard]] Result<LiveTable> read() const;

    // Puts the table in force. When it returns no packet uses what was in force before.
    [[nodiscard]] Status replace(const WantedTable& wanted);

    // For tests: called with the name of each step before it is done; returning false is the controller's
    // death there.
    using Step = std::function<bool(std::string_view step)>;
    void set_step_hook(Step hook) { hook_ = std::move(hook); }

  private:
    struct Bank {
        sieve_policy policy{};
        std::uint32_t map_id[SIEVE_SLOTS]{};
        [[nodiscard]] bool operator==(const Bank& other) const;
    };

    [[nodiscard]] std::uint32_t active() const;
    [[nodiscard]] Result<Bank> read_bank(std::uint32_t bank) const;
    // Writes the bank, of which only the places that differ from `present` need it.
    [[nodiscard]] Status write_bank(std::uint32_t bank, const Bank& present, const Bank& target);
    [[nodiscard]] Status settle();
    [[nodiscard]] Status step(std::string_view name) const;

    const Instance* instance_;
    Step hook_;
};

} // namespace sieve::kernel
