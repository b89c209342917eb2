// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/set_table.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/grace_period.hpp"
#include "libsieve/kernel/refusal.hpp"
#include "libsieve/kernel/stats.hpp"

namespace sieve::kernel {

namespace {

// The control block is shared with a running program: word by word, so that nothing is read or written twice.
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

Result<std::uint32_t> map_id(int fd) {
    bpf_map_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(fd, &info, &length); error != 0)
        return refusal("asking for the identity of a filter's BPF map", error);
    return info.id;
}

// Puts maps into places of the array-of-maps: in one batch, which costs one grace period, where the kernel
// has that (5.18), else one by one, each with a grace period of its own.
Status put_maps(int sets_fd, std::vector<std::uint32_t>& places, std::vector<std::int32_t>& maps) {
    if (places.empty()) return {};
    LIBBPF_OPTS(bpf_map_batch_opts, options);
    auto count = static_cast<std::uint32_t>(places.size());
    int error = bpf_map_update_batch(sets_fd, places.data(), maps.data(), &count, &options);
    if (error != 0 && (errno == ENOTSUP || errno == EINVAL || errno == 524 /* ENOTSUPP */)) {
        error = 0;
        for (std::size_t i = 0; i < places.size() && error == 0; i++)
            error = bpf_map_update_elem(sets_fd, &places[i], &maps[i], BPF_ANY);
    }
    if (error != 0)
        return refusal("putting a filter into the program's table of sets", error,
                       "the kernel must know BPF_F_INNER_MAP (Linux 5.10)");
    return {};
}

} // namespace

const LiveSet* LiveTable::find(std::string_view name) const {
    const auto found =
        std::find_if(sets.begin(), sets.end(), [&](const LiveSet& s) { return s.name == name; });
    return found == sets.end() ? nullptr : &*found;
}

bool is_set_name(std::string_view name) {
    return !name.empty() && name.size() < SIEVE_NAME_BYTES &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
           });
}

bool SetTable::Bank::operator==(const Bank& other) const {
    return std::memcmp(&policy, &other.policy, sizeof(policy)) == 0 &&
           std::memcmp(map_id, other.map_id, sizeof(map_id)) == 0;
}

std::uint32_t SetTable::active() const {
    return static_cast<std::uint32_t>(instance_->control().active & (SIEVE_BANKS - 1));
}

Status SetTable::step(std::string_view name) const {
    if (hook_ && !hook_(name)) return kernel_refused(fmt::format("stopped before: {}", name));
    return {};
}

Result<SetTable::Bank> SetTable::read_bank(std::uint32_t bank) const {
    Bank result;
    copy_policy(result.policy, instance_->control().bank[bank]);
    for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) {
        const std::uint32_t place = bank * SIEVE_SLOTS + slot;
        if (bpf_map_lookup_elem(instance_->sets_fd(), &place, &result.map_id[slot]) == 0) continue;
        if (errno != ENOENT) return refusal("reading the program's table of sets", errno);
        result.map_id[slot] = 0;
    }
    return result;
}

Status SetTable::write_bank(std::uint32_t bank, const Bank& present, const Bank& target) {
    std::vector<UniqueFd> fds;
    std::vector<std::uint32_t> places, gone;
    std::vector<std::int32_t> maps;
    for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) {
        if (present.map_id[slot] == target.map_id[slot]) continue;
        const std::uint32_t place = bank * SIEVE_SLOTS + slot;
        if (target.map_id[slot] == 0) {
            gone.push_back(place);
            continue;
        }
        fds.emplace_back(bpf_map_get_fd_by_id(target.map_id[slot]));
        if (!fds.back()) return refusal(fmt::format("opening BPF map {}", target.map_id[slot]), errno);
        places.push_back(place);
        maps.push_back(fds.back().get());
    }
    SIEVE_TRY(step("put maps"));
    SIEVE_TRY(put_maps(instance_->sets_fd(), places, maps));
    SIEVE_TRY(step("write policy"));
    copy_policy(instance_->control().bank[bank], target.policy);
    for (const std::uint32_t place : gone) {
        SIEVE_TRY(step("clear place"));
        if (const int error = bpf_map_delete_elem(instance_->sets_fd(), &place);
            error != 0 && errno != ENOENT)
            return refusal("clearing a place in the program's table of sets", error);
    }
    return {};
}

Status SetTable::settle() {
    const std::uint32_t bank = active();
    SIEVE_ASSIGN(const Bank in_force, read_bank(bank));
    SIEVE_ASSIGN(const Bank other, read_bank(bank ^ 1));
    if (in_force == other) return {};
    SIEVE_TRY(step("grace"));
    SIEVE_TRY(grace_period());
    return write_bank(bank ^ 1, other, in_force);
}

Result<LiveTable> SetTable::read() const {
    SIEVE_ASSIGN(const Bank bank, read_bank(active()));
    LiveTable table;
    table.default_action = static_cast<sieve_action>(bank.policy.default_action);
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(bank.policy.sets, SIEVE_MAX_SETS); i++) {
        const sieve_policy_entry& entry = bank.policy.entry[i];
        const std::uint32_t slot = entry.slot & (SIEVE_SLOTS - 1);
        table.sets.push_back({slot_name(bank.policy.slot[slot]), static_cast<sieve_action>(entry.action),
                              slot, bank.map_id[slot], bank.policy.slot[slot].baseline});
    }
    return table;
}

Status SetTable::replace(const WantedTable& wanted) {
    if (wanted.sets.size() > SIEVE_MAX_SETS)
        return usage_error(
            fmt::format("{} sets, but the program takes at most {}", wanted.sets.size(), SIEVE_MAX_SETS));
    SIEVE_TRY(settle());
    const std::uint32_t bank = active();
    SIEVE_ASSIGN(const Bank present, read_bank(bank));
    SIEVE_ASSIGN(const LiveTable live, read());

    // Slots that no packet uses now and whose counters therefore stand still: those not in the active bank,
    // the other one being equal to it and at rest.
    std::set<std::uint32_t> free;
    for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) free.insert(slot);
    for (const LiveSet& set : live.sets) free.erase(set.slot);
    std::optional<Stats> stats;

    Bank target;
    target.policy.default_action = wanted.default_action;
    std::set<std::string> names;
    for (const WantedSet& set : wanted.sets) {
        if (!is_set_name(set.name) || !names.insert(set.name).second)
            return usage_error(
                fmt::format("set name `{}`: expected 1 to 31 of A-Z a-z 0-9 . _ -, each once", set.name));
        const LiveSet* before = live.find(set.name);
        if (before == nullptr && set.map_fd < 0) return usage_error(fmt::format("no set {}", set.name));
        std::uint32_t slot = 0;
        sieve_slot note{};
        if (before != nullptr) {
            slot = before->slot;
            note.baseline = before->baseline;
        } else {
            slot = *free.begin(); // there are as many as two tables need
            free.erase(slot);
            if (!stats) {
                SIEVE_ASSIGN(stats, read_stats(*instance_));
            }
            note.baseline = stats->hit[slot];
        }
        set.name.copy(note.name, sizeof(note.name) - 1);
        target.policy.slot[slot] = note;
        target.policy.entry[target.policy.sets++] = {
            static_cast<__u8>(slot), static_cast<__u8>(set.action), {}};
        target.map_id[slot] = present.map_id[slot];
        if (set.map_fd >= 0) {
            SIEVE_ASSIGN(target.map_id[slot], map_id(set.map_fd));
        }
    }
    if (target == present) return {};

    SIEVE_TRY(write_bank(bank ^ 1, present, target));
    SIEVE_TRY(step("flip"));
    std::atomic_thread_fence(std::memory_order_release);
    instance_->control().active = bank ^ 1;
    std::atomic_thread_fence(std::memory_order_seq_cst);

    SIEVE_TRY(step("grace"));
    SIEVE_TRY(grace_period());
    return write_bank(bank, present, target);
}

} // namespace sieve::kernel
