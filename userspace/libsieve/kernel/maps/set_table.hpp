// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The sets of an instance and their order: read, and changed in one step that no packet sees half of.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sieve/policy.h>

#include "libsieve/kernel/maps/instance.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

// A set in force.
struct SetInForce {
    std::string name;
    sieve_action action = SIEVE_ACTION_DROP;
    std::uint32_t target = 0;           // see WantedSet
    std::uint32_t slot = 0;             // index of its counters
    std::uint32_t map_id = 0;           // its filter
    std::uint32_t exact_id = 0;         // its exact set; 0: the filter's matches are not verified
    sieve_counter baseline{};           // what its counters stood at when it came
    sieve_verified verified_baseline{}; // likewise when its filter came
    std::uint32_t burst = 0;            // of a limit
    sieve_counter over_baseline{};      // of the packets over the limit
    std::uint32_t inserted_id = 0;      // the keys inserted since its filter was built; 0: no such map
    // Its number in the table's joint filter; nothing: the set is asked by its own filter.
    std::optional<std::uint32_t> joined{};
    bool keeps_replies_out = false; // it drops answers to own flows, too
    sieve_condition condition{};    // only packets that meet it match; asks for no field: all do
};

// All sets in force, in the order they are asked.
struct TableInForce {
    sieve_action default_action = SIEVE_ACTION_PASS;
    sieve_action unreadable = SIEVE_ACTION_PASS; // for packets that cannot be read to their end
    std::vector<SetInForce> sets;
    // Time left until the table from before the last change comes back, unless the change is confirmed;
    // nothing if the table is in force for good.
    std::optional<std::chrono::nanoseconds> probation{};
    bool taken_back = false;    // the last change was not confirmed in time; its filters are still in memory
    sieve_totals baseline{};    // what the table's counters stood at when they were last reset
    std::uint32_t joint_id = 0; // the joint filter of the sets that are joined; 0: none is
    sieve_action replies = SIEVE_ACTION_DROP; // or pass: what would be dropped passes if it answers own flows

    [[nodiscard]] const SetInForce* find(std::string_view name) const;
};

// A set as it is wanted. A set whose name is in force already keeps its counters, unless they are to start
// afresh; a new one's start at zero.
struct WantedSet {
    std::string name;
    sieve_action action = SIEVE_ACTION_DROP;
    int map_fd = -1;                // of a FilterMap; -1 keeps the filter of the set that has the name now
    std::uint32_t target = 0;       // of a redirecting action, as in Target; of a limit: packets per second
    int exact_fd = -1;              // of an ExactSet, which comes and stays with its filter; -1: not verified
    std::uint32_t burst = 0;        // of a limit: packets at once
    int inserted_fd = -1;           // of an InsertedMap, likewise; -1: keeps the one of a filter that stays
    bool fresh_counters = false;    // its counters start at zero even if the name is in force
    bool keep_inserted = false;     // a new filter takes over the present one's map of inserted keys
    bool keeps_replies_out = false; // of a set that drops: it drops answers to own flows, too
    sieve_condition condition{};    // only packets that meet it match; asks for no field: all do
    // Packets look for the filter in the table of sets once each, so that it may change places with the
    // present one while they are under way. True of single addresses of kind exact (bpf/lookup.h).
    bool found_once = false;
};

// A joint filter (sieve/joint.h) and the sets that it was built of, by name, in the order of their numbers. A
// set that the table does not have is passed over.
struct WantedJoint {
    int map_fd = -1;
    std::vector<std::string> sets;
};

struct WantedTable {
    sieve_action default_action = SIEVE_ACTION_PASS;
    std::vector<WantedSet> sets;
    sieve_action unreadable = SIEVE_ACTION_DROP; // or pass: packets that cannot be read to their end
    // Not zero: the table is on probation. The program itself goes back to the table from before after this
    // time, unless SetTable::confirm() is called.
    std::chrono::nanoseconds probation{0};
    // Nothing: the joint filter in force, if there is one, stays for the sets whose filters stay. In either
    // case those sets are joined whose numbers rise in the table's order, as many as possible. The others are
    // asked by their own filters.
    std::optional<WantedJoint> joint{};
    bool reset_counters = false; // all counters start at zero, those of the sets and those of the table
    // Or pass: what would be dropped, by a set or by default, passes if it answers a flow that this host
    // began. The instance needs a FlowMemory, in which the interfaces' noting programs write.
    sieve_action replies = SIEVE_ACTION_DROP;
};

// The numbers under which a joint filter will answer for the sets of a wanted table, in its order, if it
// follows `present`. Nothing for a set that is asked by its own filter, and for all sets if fewer than two
// are left.
[[nodiscard]] std::vector<std::optional<std::uint32_t>> joined_numbers(const WantedTable& wanted,
                                                                       const TableInForce& present);

// 1 to 31 letters, digits, dots, underscores and dashes, and no dot in front: names of sets are names of
// folders, too. set_name_form() says so in an error.
[[nodiscard]] bool is_set_name(std::string_view name);
[[nodiscard]] std::string set_name_form();

// Changes use the two banks of sieve/policy.h, under this invariant: while `changing` is zero, both banks are
// equal (the same policy, the same filters in the same slots), and no packet is still using the idle bank.
// The caller holds the Lock.
//
// A change sets `changing`, writes what differs to the idle bank, and flips `active` by one aligned store. It
// waits for a grace period and makes the other bank equal, which drops the last reference to a filter that
// left. Then it clears `changing`. A controller that dies during a change leaves the running program with one
// whole bank, the old or the new. The next controller finds `changing` set, waits for a grace period (for
// packets that may have read the bank that the dead controller was leaving), and writes the whole other bank
// anew.
//
// If nothing changes but one filter, which packets find with one look (WantedSet::found_once), the banks have
// no part in it: `changing` says so, both banks note the new filter, and it takes its place in both. Before
// Linux 6.8 the kernel waits for packets once for each place, from then on once for both; a change of banks
// takes three such waits. After the death of a controller, the map indices tell which filter is in force.
//
// A change on probation stops after the flip, and `active` carries its deadline. The other bank keeps the
// table from before, `changing` stays set, and no other change is allowed, but for leave_joint(). After the
// deadline packets read the other bank; the next change finds that, and levels the banks as after a dead
// controller.
//
// Otherwise the policy's notes, not the map indices, tell which filter is where: before Linux 6.8 every
// lookup in a map-in-map by a system call costs a grace period, too.
class SetTable {
  public:
    explicit SetTable(const Instance& instance) : instance_(&instance) {}

    [[nodiscard]] TableInForce read() const;

    // While a change is on probation: the table that comes back unless it is confirmed. Nothing otherwise.
    [[nodiscard]] std::optional<TableInForce> read_returning() const;

    // Puts the table in force. When it succeeds no packet uses what was in force before. An error of kind
    // unfinished: the table is in force, but the filters that left stay in memory until the next change. Any
    // other error: the table in force is what it was. Error unconfirmed: a change is on probation.
    [[nodiscard]] Status replace(const WantedTable& wanted);

    // Ends the probation of the last change: puts its table in force for good, or brings back the table from
    // before at once. Error no: no change is on probation, or its time is over. Error unfinished as above.
    [[nodiscard]] Status confirm();
    [[nodiscard]] Status take_back();

    // Takes the set with this filter out of the joint filters of both banks, the one that packets read and
    // the one that may come back. It is for a change on probation, which does not let replace() do so. When
    // it succeeds, no packet is judged by what a joint filter says of the set. Until then the set's keys must
    // stay. Error: waiting for packets failed; then some may still be judged by it.
    [[nodiscard]] Status leave_joint(std::uint32_t map_id);

    // Nothing if the table may be changed; error unconfirmed if a change is on probation.
    [[nodiscard]] Status may_change() const;

    // The same for an instance that no packet runs through yet. It was loaded with the filters of exactly
    // these sets in this order (BpfObject::Options::filters). There is no need to wait for packets. On
    // probation, the table from before is an empty one that passes every packet.
    [[nodiscard]] Status install(const WantedTable& wanted);

    // For tests: called with the name of each step before the step. An exception from it stands for the
    // controller's death.
    using Step = std::function<void(std::string_view step)>;
    void set_step_hook(Step hook) { hook_ = std::move(hook); }

  private:
    [[nodiscard]] std::uint32_t active() const; // the bank that packets read now
    [[nodiscard]] Status refuse_unless_on_probation() const;
    [[nodiscard]] sieve_policy read_bank(std::uint32_t bank) const;
    // Writes a bank. With `present`, writes only the map indices whose filter differs from its; otherwise
    // all.
    [[nodiscard]] Status write_bank(std::uint32_t bank, const std::optional<sieve_policy>& present,
                                    const sieve_policy& target);
    [[nodiscard]] Status finish_change();
    // Corrects the active bank's notes of filters by the map indices.
    [[nodiscard]] Status note_filters() const;
    // Puts a filter into the slot in both banks, in whose policies nothing else is to change.
    [[nodiscard]] Status exchange_filter(std::uint32_t slot, std::uint32_t map_id);
    // After the flip: waits for the packets that use the bank and makes it equal to the active one.
    [[nodiscard]] Status leave_bank(std::uint32_t bank, const sieve_policy& present,
                                    const sieve_policy& target);
    [[nodiscard]] Result<sieve_policy> policy_of(const WantedTable& wanted,
                                                 const sieve_policy& present) const;
    // Says which of the policy's sets its joint filter answers for.
    [[nodiscard]] static Status add_joint(sieve_policy& policy, const WantedTable& wanted,
                                          const TableInForce& present);
    // Gives a policy the maps of its targets: the present maps if the targets are the same, otherwise new
    // ones.
    [[nodiscard]] Status add_targets(sieve_policy& policy, const sieve_policy& present,
                                     std::vector<UniqueFd>& held) const;
    // Fills the bucket of each limited set that was not there before.
    [[nodiscard]] Status fill_buckets(const sieve_policy& policy, const sieve_policy& present) const;
    void step(std::string_view name) const;

    const Instance* instance_;
    Step hook_;
};

} // namespace sieve::kernel
