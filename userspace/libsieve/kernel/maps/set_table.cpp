// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/set_table.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/host/grace_period.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/map_indices.hpp"
#include "libsieve/kernel/maps/redirect_maps.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/util/results/unfinished.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve::kernel {

namespace {

// The control block is shared with a running program, so copy word by word: nothing is read or written twice.
void copy_policy(sieve_policy& to, const volatile sieve_policy& from) {
    static_assert(sizeof(sieve_policy) % sizeof(std::uint32_t) == 0);
    auto* target = reinterpret_cast<std::uint32_t*>(&to);
    const auto* source = reinterpret_cast<const volatile std::uint32_t*>(&from);
    for (std::size_t i = 0; i < sizeof(sieve_policy) / sizeof(*target); i++) target[i] = source[i];
}

void copy_policy(volatile sieve_policy& to, const sieve_policy& from) {
    auto* target = reinterpret_cast<volatile std::uint32_t*>(&to);
    const auto* source = reinterpret_cast<const std::uint32_t*>(&from);
    for (std::size_t i = 0; i < sizeof(sieve_policy) / sizeof(*source); i++) target[i] = source[i];
}

std::string slot_name(const sieve_slot& slot) {
    return {slot.name, ::strnlen(slot.name, sizeof(slot.name))};
}

// The maps that belong at a bank's map indices, by the ids that its policy notes.
struct BankMaps {
    std::array<std::uint32_t, SIEVE_SLOTS> sets{};
    std::array<std::uint32_t, SIEVE_SLOTS> exact{};
    std::array<std::uint32_t, SIEVE_SLOTS> inserted{};
    std::array<std::uint32_t, 1> joint{};
    std::array<std::uint32_t, 1> devices{};
    std::array<std::uint32_t, 1> cpus{};
};

BankMaps bank_maps_of(const sieve_policy& policy) {
    BankMaps maps;
    for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) {
        maps.sets[slot] = policy.slot[slot].map_id;
        maps.exact[slot] = policy.slot[slot].exact_id;
        maps.inserted[slot] = policy.slot[slot].inserted_id;
    }
    maps.joint[0] = policy.joint_id;
    maps.devices[0] = policy.devices_id;
    maps.cpus[0] = policy.cpus_id;
    return maps;
}

std::set<std::uint32_t> targets_of(const sieve_policy& policy, sieve_action action) {
    std::set<std::uint32_t> targets;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(policy.sets, SIEVE_MAX_SETS); i++)
        if (policy.entry[i].action == action) targets.insert(policy.entry[i].target);
    return targets;
}

Status check_limit(const WantedSet& set, sieve_action default_action) {
    if (default_action == SIEVE_ACTION_DROP)
        return invalid_request(fmt::format("set {}: a limit lets matches take the default, and the default "
                                           "is drop; expected default pass",
                                           set.name));
    const std::uint64_t longest = std::uint64_t{set.target} * SIEVE_LIMIT_MOST_SECONDS;
    if (set.target < 1 || set.target > SIEVE_LIMIT_MOST_RATE || set.burst < 1 || set.burst > longest)
        return invalid_request(fmt::format("set {}: limit {}/{}: expected 1 to {} packets per second, and a "
                                           "burst of 1 packet to {} seconds' worth",
                                           set.name, set.target, set.burst, SIEVE_LIMIT_MOST_RATE,
                                           SIEVE_LIMIT_MOST_SECONDS));
    return {};
}

constexpr sieve_policy pass_all() {
    sieve_policy policy{};
    policy.default_action = SIEVE_ACTION_PASS;
    policy.unreadable = SIEVE_ACTION_PASS;
    return policy;
}

// Of the numbers, keeps a longest subsequence that rises, and takes the others out.
void keep_rising(std::vector<std::optional<std::uint32_t>>& numbers) {
    // The length of the longest one that ends at each number, and its last but one member.
    std::vector<std::size_t> length(numbers.size()), before(numbers.size(), numbers.size());
    std::size_t last = numbers.size();
    for (std::size_t i = 0; i < numbers.size(); i++) {
        if (!numbers[i]) continue;
        length[i] = 1;
        for (std::size_t j = 0; j < i; j++)
            if (numbers[j] && *numbers[j] < *numbers[i] && length[j] + 1 > length[i]) {
                length[i] = length[j] + 1;
                before[i] = j;
            }
        if (last == numbers.size() || length[i] > length[last]) last = i;
    }
    std::vector<std::optional<std::uint32_t>> kept(numbers.size());
    for (; last != numbers.size(); last = before[last]) kept[last] = numbers[last];
    numbers = std::move(kept);
}

// Refuses what the program cannot hold or do. `cpus`: its hook hands packets to other CPUs.
Status check_wanted(const WantedTable& wanted, const TableInForce& live, bool cpus) {
    if (wanted.sets.size() > SIEVE_MAX_SETS)
        return invalid_request(
            fmt::format("{} sets, but the program takes at most {}", wanted.sets.size(), SIEVE_MAX_SETS));
    std::set<std::string> names;
    for (const WantedSet& set : wanted.sets) {
        if (!is_set_name(set.name) || !names.insert(set.name).second)
            return invalid_request(
                fmt::format("set name `{}`: expected {}, each once", set.name, set_name_form()));
        if (live.find(set.name) == nullptr && set.map_fd < 0)
            return invalid_request(fmt::format("no set {}", set.name));
        if (set.action == SIEVE_ACTION_LIMIT) SIEVE_TRY(check_limit(set, wanted.default_action));
        if (set.action == SIEVE_ACTION_REDIRECT_CPU && !cpus)
            return invalid_request(
                fmt::format("set {}: only the XDP hook hands packets to another CPU; expected "
                            "an interface to redirect to",
                            set.name));
    }
    return {};
}

// The table that a bank's policy describes.
TableInForce table_of(const sieve_policy& policy) {
    TableInForce table;
    table.default_action = static_cast<sieve_action>(policy.default_action);
    table.unreadable = static_cast<sieve_action>(policy.unreadable);
    table.baseline = policy.baseline;
    table.replies = static_cast<sieve_action>(policy.replies);
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(policy.sets, SIEVE_MAX_SETS); i++) {
        const std::uint32_t slot = policy.entry[i].slot & (SIEVE_SLOTS - 1);
        const sieve_slot& note = policy.slot[slot];
        const std::uint32_t joined = policy.entry[i].joined;
        // A bank that all sets have left keeps the filter (leave_joint()).
        if (joined != 0) table.joint_id = policy.joint_id;
        table.sets.push_back(
            {slot_name(note), static_cast<sieve_action>(policy.entry[i].action), policy.entry[i].target, slot,
             note.map_id, note.exact_id, note.baseline, note.verified_baseline, policy.limit[slot].burst,
             note.over_baseline, note.inserted_id, joined != 0 ? std::optional(joined - 1) : std::nullopt,
             (policy.entry[i].flags & SIEVE_ENTRY_KEEPS_REPLIES_OUT) != 0, policy.condition[i]});
    }
    return table;
}

// The entries that leave a joint filter together with the set of this filter. One set alone has no use for
// it.
std::vector<std::uint32_t> leaving(const sieve_policy& policy, std::uint32_t map_id) {
    std::vector<std::uint32_t> joined;
    std::optional<std::uint32_t> asked;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(policy.sets, SIEVE_MAX_SETS); i++) {
        if (policy.entry[i].joined == 0) continue;
        joined.push_back(i);
        if (policy.slot[policy.entry[i].slot & (SIEVE_SLOTS - 1)].map_id == map_id) asked = i;
    }
    if (!asked) return {};
    return joined.size() - 1 < SIEVE_JOINT_LEAST_SETS ? joined : std::vector{*asked};
}

// What `changing` says.
constexpr std::uint64_t changing_banks = 1; // or something else that is not zero
constexpr std::uint64_t changing_a_filter = 2;

// The slot of the set whose filter is all that changes, if packets find it with one look.
std::optional<std::uint32_t> slot_to_exchange(const WantedTable& wanted, const sieve_policy& present,
                                              const sieve_policy& target) {
    if (wanted.probation.count() > 0) return std::nullopt;
    for (std::uint32_t i = 0; i < std::min<std::size_t>(target.sets, wanted.sets.size()); i++) {
        const std::uint32_t slot = target.entry[i].slot;
        if (target.slot[slot].map_id == present.slot[slot].map_id) continue;
        sieve_policy before = target;
        before.slot[slot].map_id = present.slot[slot].map_id;
        const bool nothing_else = std::memcmp(&before, &present, sizeof(before)) == 0;
        return wanted.sets[i].found_once && nothing_else ? std::optional(slot) : std::nullopt;
    }
    return std::nullopt;
}

} // namespace

const SetInForce* TableInForce::find(std::string_view name) const {
    const auto found =
        std::find_if(sets.begin(), sets.end(), [&](const SetInForce& s) { return s.name == name; });
    return found == sets.end() ? nullptr : &*found;
}

std::vector<std::optional<std::uint32_t>> joined_numbers(const WantedTable& wanted,
                                                         const TableInForce& present) {
    std::vector<std::optional<std::uint32_t>> numbers;
    for (const WantedSet& set : wanted.sets) {
        std::optional<std::uint32_t> number;
        if (wanted.joint) {
            const auto& names = wanted.joint->sets;
            const auto found = std::find(names.begin(), names.end(), set.name);
            if (found != names.end()) number = static_cast<std::uint32_t>(found - names.begin());
        } else if (const SetInForce* const before = present.find(set.name);
                   before != nullptr && set.map_fd < 0) {
            number = before->joined;
        }
        numbers.push_back(number);
    }
    keep_rising(numbers);
    const auto joined =
        std::count_if(numbers.begin(), numbers.end(), [](const auto& number) { return number.has_value(); });
    if (joined < SIEVE_JOINT_LEAST_SETS) std::fill(numbers.begin(), numbers.end(), std::nullopt);
    return numbers;
}

bool is_set_name(std::string_view name) {
    return !name.empty() && name.front() != '.' && name.size() < SIEVE_NAME_BYTES &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
           });
}

std::string set_name_form() {
    return fmt::format("1 to {} of A-Z a-z 0-9 . _ -, and no dot in front", SIEVE_NAME_BYTES - 1);
}

std::uint32_t SetTable::active() const {
    return sieve_bank_in_force(instance_->control().active, program_now());
}

void SetTable::step(std::string_view name) const {
    if (hook_) hook_(name);
}

sieve_policy SetTable::read_bank(std::uint32_t bank) const {
    sieve_policy policy{};
    copy_policy(policy, instance_->control().bank[bank]);
    return policy;
}

Status SetTable::write_bank(std::uint32_t bank, const std::optional<sieve_policy>& present,
                            const sieve_policy& target) {
    const BankMaps wanted = bank_maps_of(target);
    const std::optional<BankMaps> there = present ? std::optional(bank_maps_of(*present)) : std::nullopt;
    struct Outer {
        int fd; // of the map-in-map
        MapChange change;
    };
    std::vector<Outer> outers;
    std::vector<UniqueFd> opened;
    const auto change = [&](const auto member) {
        const auto& ids = wanted.*member;
        const auto before =
            there ? std::span<const std::uint32_t>((*there).*member) : std::span<const std::uint32_t>();
        return change_of(bank * static_cast<std::uint32_t>(ids.size()), before, ids);
    };
    const auto add_rare = [&](std::uint32_t id, const auto member) -> Status {
        MapChange changed = change(member);
        // Not every program has all of these maps, and a program does not use a map that it lacks.
        if (id == 0 || (changed.indices.empty() && changed.gone.empty())) return {};
        SIEVE_ASSIGN(UniqueFd fd, open_map(id));
        outers.push_back({fd.get(), std::move(changed)});
        opened.push_back(std::move(fd));
        return {};
    };
    outers.push_back({instance_->sets_fd(), change(&BankMaps::sets)});
    SIEVE_TRY(add_rare(instance_->rare().exact, &BankMaps::exact));
    SIEVE_TRY(add_rare(instance_->rare().inserted, &BankMaps::inserted));
    SIEVE_TRY(add_rare(instance_->rare().joint, &BankMaps::joint));
    SIEVE_TRY(add_rare(instance_->rare().devices, &BankMaps::devices));
    SIEVE_TRY(add_rare(instance_->rare().cpus, &BankMaps::cpus));
    step("put maps");
    for (const Outer& each : outers) SIEVE_TRY(put_maps(each.fd, each.change));
    step("write policy");
    copy_policy(instance_->control().bank[bank], target);
    for (const Outer& each : outers)
        for (const std::uint32_t index : each.change.gone) {
            step("clear index");
            SIEVE_TRY(clear_map(each.fd, index));
        }
    return {};
}

Status SetTable::note_filters() const {
    const std::uint32_t bank = active();
    volatile sieve_slot* const slots = instance_->control().bank[bank].slot;
    for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) {
        if (slots[slot].map_id == 0) continue;
        const std::uint32_t index = bank * SIEVE_SLOTS + slot;
        std::uint32_t id = 0;
        if (const int error = bpf_map_lookup_elem(instance_->sets_fd(), &index, &id); error != 0)
            return refusal("asking which filter is in the program's table of sets", error);
        slots[slot].map_id = id;
    }
    return {};
}

Status SetTable::exchange_filter(std::uint32_t slot, std::uint32_t map_id) {
    const std::uint32_t bank = active();
    step("begin");
    instance_->control().changing = changing_a_filter;
    step("note filter");
    for (volatile sieve_policy& each : instance_->control().bank) each.slot[slot].map_id = map_id;
    step("put maps");
    // The active bank's comes last: an error says that it is not there.
    const MapChange change{.indices = {(bank ^ 1) * SIEVE_SLOTS + slot, bank * SIEVE_SLOTS + slot},
                           .ids = {map_id, map_id},
                           .gone = {}};
    if (Status put = put_maps(instance_->sets_fd(), change); !put) {
        (void)finish_change(); // if this fails too, the next controller does it
        return put;
    }
    step("finished");
    instance_->control().changing = 0;
    return {};
}

Status SetTable::finish_change() {
    if (instance_->control().changing == 0) return {};
    if (instance_->control().changing == changing_a_filter) SIEVE_TRY(note_filters());
    const std::uint32_t bank = active();
    // Of a change that was taken back, only the deadline still says so.
    instance_->control().active = bank;
    step("grace");
    SIEVE_TRY(grace_period());
    SIEVE_TRY(write_bank(bank ^ 1, std::nullopt, read_bank(bank)));
    step("finished");
    instance_->control().changing = 0;
    return {};
}

TableInForce SetTable::read() const {
    // A bank that stops being active while we read it may be half overwritten. Then read again.
    std::uint32_t bank = 0;
    sieve_policy policy{};
    do {
        bank = active();
        policy = read_bank(bank);
    } while (bank != active());
    TableInForce table = table_of(policy);
    if (const std::uint64_t deadline = sieve_deadline(instance_->control().active); deadline != 0) {
        const std::uint64_t now = program_now();
        table.taken_back = now >= deadline;
        if (!table.taken_back) table.probation = std::chrono::nanoseconds(deadline - now);
    }
    return table;
}

std::optional<TableInForce> SetTable::read_returning() const {
    const std::uint64_t active = instance_->control().active;
    const std::uint64_t deadline = sieve_deadline(active);
    if (deadline == 0 || program_now() >= deadline) return std::nullopt;
    return table_of(read_bank((active & 1) ^ 1));
}

Result<sieve_policy> SetTable::policy_of(const WantedTable& wanted, const sieve_policy& present) const {
    const TableInForce live = read();
    SIEVE_TRY(check_wanted(wanted, live, instance_->rare().cpus != 0));
    // Both banks are equal and no change is under way, so no packet uses a slot that the policy does not
    // name. The counters of such a slot stand still and can serve as a baseline.
    std::set<std::uint32_t> free;
    for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) free.insert(slot);
    for (const SetInForce& set : live.sets) free.erase(set.slot);
    std::optional<Stats> stats;
    const auto counted = [&]() -> Result<const Stats*> {
        if (!stats) {
            SIEVE_ASSIGN(stats, read_stats(*instance_));
        }
        return &*stats;
    };

    sieve_policy policy{};
    policy.default_action = wanted.default_action;
    policy.unreadable = wanted.unreadable;
    policy.replies = wanted.replies;
    policy.baseline = present.baseline;
    if (wanted.reset_counters) {
        SIEVE_ASSIGN(const Stats* const now, counted());
        policy.baseline = totals_of(*now);
    }
    for (const WantedSet& set : wanted.sets) {
        const SetInForce* before = live.find(set.name);
        std::uint32_t slot = 0;
        sieve_slot note{};
        if (before != nullptr) {
            slot = before->slot;
            note = present.slot[slot];
        } else {
            set.name.copy(note.name, sizeof(note.name) - 1);
        }
        const bool fresh = before == nullptr || set.fresh_counters;
        if (fresh) {
            slot = *free.begin(); // there are as many slots as two tables need
            free.erase(slot);
        }
        // A set that stays in its slot is reset as of now, and packets go on counting meanwhile.
        if (fresh || wanted.reset_counters) {
            SIEVE_ASSIGN(const Stats* const now, counted());
            note.baseline = now->hit[slot];
            note.over_baseline = now->over[slot];
            note.verified_baseline = now->verified[slot];
        }
        if (set.map_fd >= 0) {
            SIEVE_ASSIGN(note.map_id, map_id(set.map_fd));
            note.exact_id = 0;
            if (!set.keep_inserted) note.inserted_id = 0;
            if (set.exact_fd >= 0) {
                SIEVE_ASSIGN(note.exact_id, map_id(set.exact_fd));
                // The baseline of this filter, not of the previous one. The few packets before the flip do
                // not matter here.
                if (before == nullptr || before->exact_id != note.exact_id) {
                    SIEVE_ASSIGN(const Stats* const now, counted());
                    note.verified_baseline = now->verified[slot];
                }
            }
        }
        if (set.inserted_fd >= 0) {
            SIEVE_ASSIGN(note.inserted_id, map_id(set.inserted_fd));
        }
        policy.slot[slot] = note;
        if (set.action == SIEVE_ACTION_LIMIT) policy.limit[slot] = sieve_limit_of(set.target, set.burst);
        unsigned flags = 0;
        if (note.exact_id != 0) flags |= SIEVE_ENTRY_VERIFY;
        if (set.keeps_replies_out) flags |= SIEVE_ENTRY_KEEPS_REPLIES_OUT;
        if (set.condition.fields != 0) flags |= SIEVE_ENTRY_CONDITION;
        policy.condition[policy.sets] = set.condition;
        policy.entry[policy.sets++] = {.slot = static_cast<__u8>(slot),
                                       .action = static_cast<__u8>(set.action),
                                       .flags = static_cast<__u8>(flags),
                                       .joined = 0,
                                       .target = set.target};
    }
    SIEVE_TRY(add_joint(policy, wanted, live));
    return policy;
}

Status SetTable::add_joint(sieve_policy& policy, const WantedTable& wanted, const TableInForce& present) {
    const std::vector<std::optional<std::uint32_t>> numbers = joined_numbers(wanted, present);
    policy.joined = static_cast<std::uint32_t>(
        std::count_if(numbers.begin(), numbers.end(), [](const auto& number) { return number.has_value(); }));
    if (policy.joined == 0) return {};
    if (wanted.joint) {
        SIEVE_ASSIGN(policy.joint_id, map_id(wanted.joint->map_fd));
    } else {
        policy.joint_id = present.joint_id;
    }
    for (std::size_t i = 0; i < numbers.size(); i++) {
        const auto bit = static_cast<__u16>(1U << i);
        if (!numbers[i]) {
            policy.joint.alone |= bit;
            continue;
        }
        policy.entry[i].joined = static_cast<__u8>(*numbers[i] + 1);
        for (std::uint32_t answer = 0; answer <= *numbers[i]; answer++) policy.joint.after[answer] |= bit;
    }
    return {};
}

Status SetTable::add_targets(sieve_policy& policy, const sieve_policy& present,
                             std::vector<UniqueFd>& held) const {
    const auto add = [&](sieve_action action, std::uint32_t sieve_policy::*id, const auto& create) -> Status {
        const std::set<std::uint32_t> targets = targets_of(policy, action);
        const std::set<std::uint32_t> before = targets_of(present, action);
        if (targets == before) {
            policy.*id = present.*id;
        } else if (!targets.empty()) {
            SIEVE_ASSIGN(UniqueFd map, create(targets, before));
            SIEVE_ASSIGN(policy.*id, map_id(map.get()));
            held.push_back(std::move(map));
        }
        return {};
    };
    SIEVE_TRY(add(SIEVE_ACTION_REDIRECT_DEVICE, &sieve_policy::devices_id, create_device_map));
    return add(SIEVE_ACTION_REDIRECT_CPU, &sieve_policy::cpus_id, create_cpu_map);
}

Status SetTable::fill_buckets(const sieve_policy& policy, const sieve_policy& present) const {
    UniqueFd accounts;
    for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) {
        if (policy.limit[slot].interval == 0 || present.limit[slot].interval != 0) continue;
        if (!accounts) {
            SIEVE_ASSIGN(accounts, open_map(instance_->rare().accounts));
        }
        const sieve_account full{};
        if (const int error = bpf_map_update_elem(accounts.get(), &slot, &full, BPF_ANY); error != 0)
            return refusal("filling the bucket of a set's limit", error);
    }
    return {};
}

Status SetTable::install(const WantedTable& wanted) {
    for (auto& bank : instance_->control().bank) copy_policy(bank, sieve_policy{});
    SIEVE_ASSIGN(sieve_policy policy, policy_of(wanted, sieve_policy{}));
    std::vector<UniqueFd> held; // keeps the maps until the program holds them
    SIEVE_TRY(add_targets(policy, sieve_policy{}, held));
    sieve_policy there = policy; // what is in the kernel already: everything but the targets' maps
    there.devices_id = there.cpus_id = there.joint_id = 0;
    if (wanted.probation.count() == 0) {
        for (std::uint32_t bank = 0; bank < SIEVE_BANKS; bank++) SIEVE_TRY(write_bank(bank, there, policy));
        return {};
    }
    SIEVE_TRY(write_bank(0, there, pass_all()));
    SIEVE_TRY(write_bank(1, there, policy));
    instance_->control().changing = changing_banks;
    instance_->control().active =
        sieve_active_until(1, program_now() + static_cast<std::uint64_t>(wanted.probation.count()));
    return {};
}

Status SetTable::may_change() const {
    const std::optional<std::chrono::nanoseconds> left = read().probation;
    if (!left) return {};
    return failure(
        ErrorKind::unconfirmed,
        fmt::format("the last change is on probation: it is taken back in {} s unless it is confirmed",
                    std::chrono::ceil<std::chrono::seconds>(*left).count()));
}

Status SetTable::refuse_unless_on_probation() const {
    const TableInForce now = read();
    if (now.probation) return {};
    return failure(ErrorKind::no, now.taken_back ? "the last change was taken back: its time was over"
                                                 : "no change is on probation");
}

Status SetTable::confirm() {
    SIEVE_TRY(refuse_unless_on_probation());
    const std::uint32_t bank = active();
    step("confirm");
    instance_->control().active = bank;
    if (const Status done =
            without_throwing([&] { return leave_bank(bank ^ 1, read_bank(bank ^ 1), read_bank(bank)); });
        !done)
        return unfinished("the change is confirmed, but the old filters stay in memory until the next change",
                          done.error());
    return {};
}

Status SetTable::take_back() {
    SIEVE_TRY(refuse_unless_on_probation());
    const std::uint32_t bank = active() ^ 1;
    step("take back");
    instance_->control().active = bank;
    if (const Status done =
            without_throwing([&] { return leave_bank(bank ^ 1, read_bank(bank ^ 1), read_bank(bank)); });
        !done)
        return unfinished("the change is taken back, but its filters stay in memory until the next change",
                          done.error());
    return {};
}

// Packets may read either bank, even both in turn if the deadline passes now. So nothing is written but
// single values, and after each of them the bank says the truth about keys that have not changed yet: a set
// that is left open is asked by its own filter, and one without a number is not named. `joined` stays: a
// packet reads it twice, and would pass the first set over if it became zero in between. A controller that
// dies here leaves a table that is right.
Status SetTable::leave_joint(std::uint32_t map_id) {
    bool any = false;
    for (volatile sieve_policy& policy : instance_->control().bank) {
        sieve_policy before{};
        copy_policy(before, policy);
        for (const std::uint32_t i : leaving(before, map_id)) {
            step("leave open");
            policy.joint.alone = static_cast<__u16>(policy.joint.alone | 1U << i);
            step("take number");
            policy.entry[i].joined = 0;
            any = true;
        }
    }
    if (!any) return {};
    step("grace");
    return grace_period();
}

Status SetTable::replace(const WantedTable& wanted) {
    SIEVE_TRY(may_change());
    SIEVE_TRY(finish_change());
    const std::uint32_t bank = active();
    const sieve_policy present = read_bank(bank);
    SIEVE_ASSIGN(sieve_policy target, policy_of(wanted, present));
    std::vector<UniqueFd> held; // keeps the maps until the program holds them
    SIEVE_TRY(add_targets(target, present, held));
    SIEVE_TRY(fill_buckets(target, present));
    if (std::memcmp(&target, &present, sizeof(target)) == 0) return {};
    if (const auto slot = slot_to_exchange(wanted, present, target))
        return exchange_filter(*slot, target.slot[*slot].map_id);

    step("begin");
    instance_->control().changing = changing_banks;
    if (Status written = write_bank(bank ^ 1, present, target); !written) {
        (void)finish_change(); // if this fails too, the next controller does it
        return written;
    }
    step("flip");
    // The program must see the new bank's content before it sees the flip. Both are ordinary memory here, so
    // a release fence is enough.
    std::atomic_thread_fence(std::memory_order_release);
    if (wanted.probation.count() > 0) {
        instance_->control().active = sieve_active_until(
            bank ^ 1, program_now() + static_cast<std::uint64_t>(wanted.probation.count()));
        return {};
    }
    instance_->control().active = bank ^ 1;
    // The new table is in force from here on, even if the next step fails.
    if (const Status done = without_throwing([&] { return leave_bank(bank, present, target); }); !done)
        return unfinished("the new table is in force, but the old one stays in memory until the next change",
                          done.error());
    return {};
}

Status SetTable::leave_bank(std::uint32_t bank, const sieve_policy& present, const sieve_policy& target) {
    step("grace");
    SIEVE_TRY(grace_period());
    SIEVE_TRY(write_bank(bank, present, target));
    step("finished");
    instance_->control().changing = 0;
    return {};
}

} // namespace sieve::kernel
