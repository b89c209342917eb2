// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/set_table.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
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

std::uint32_t SetTable::active() const {
    return static_cast<std::uint32_t>(instance_->control().active & (SIEVE_BANKS - 1));
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
    std::vector<UniqueFd> fds;
    std::vector<std::uint32_t> places, gone;
    std::vector<std::int32_t> maps;
    for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) {
        const std::uint32_t id = target.slot[slot].map_id;
        if (present && present->slot[slot].map_id == id) continue;
        const std::uint32_t place = bank * SIEVE_SLOTS + slot;
        if (id == 0) {
            gone.push_back(place);
            continue;
        }
        fds.emplace_back(bpf_map_get_fd_by_id(id));
        if (!fds.back()) return refusal(fmt::format("opening BPF map {}", id), errno);
        places.push_back(place);
        maps.push_back(fds.back().get());
    }
    step("put maps");
    SIEVE_TRY(put_maps(instance_->sets_fd(), places, maps));
    step("write policy");
    copy_policy(instance_->control().bank[bank], target);
    for (const std::uint32_t place : gone) {
        step("clear place");
        if (const int error = bpf_map_delete_elem(instance_->sets_fd(), &place);
            error != 0 && errno != ENOENT)
            return refusal("clearing a place in the program's table of sets", error);
    }
    return {};
}

Status SetTable::settle() {
    if (instance_->control().changing == 0) return {};
    const std::uint32_t bank = active();
    step("grace");
    SIEVE_TRY(grace_period());
    SIEVE_TRY(write_bank(bank ^ 1, std::nullopt, read_bank(bank)));
    step("settled");
    instance_->control().changing = 0;
    return {};
}

LiveTable SetTable::read() const {
    // A bank that was left in between may be half written.
    std::uint32_t bank = 0;
    sieve_policy policy{};
    do {
        bank = active();
        policy = read_bank(bank);
    } while (bank != active());
    LiveTable table;
    table.default_action = static_cast<sieve_action>(policy.default_action);
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(policy.sets, SIEVE_MAX_SETS); i++) {
        const std::uint32_t slot = policy.entry[i].slot & (SIEVE_SLOTS - 1);
        const sieve_slot& note = policy.slot[slot];
        table.sets.push_back({slot_name(note), static_cast<sieve_action>(policy.entry[i].action), slot,
                              note.map_id, note.baseline});
    }
    return table;
}

Result<sieve_policy> SetTable::policy_of(const WantedTable& wanted, const sieve_policy& present) const {
    if (wanted.sets.size() > SIEVE_MAX_SETS)
        return usage_error(
            fmt::format("{} sets, but the program takes at most {}", wanted.sets.size(), SIEVE_MAX_SETS));
    const LiveTable live = read();
    // Both banks being equal and at rest, the slots that the policy does not name are used by no packet:
    // their counters stand still and can be taken for a baseline.
    std::set<std::uint32_t> free;
    for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) free.insert(slot);
    for (const LiveSet& set : live.sets) free.erase(set.slot);
    std::optional<Stats> stats;

    sieve_policy policy{};
    policy.default_action = wanted.default_action;
    std::set<std::string> names;
    for (const WantedSet& set : wanted.sets) {
        if (!is_set_name(set.name) || !names.insert(set.name).second)
            return usage_error(fmt::format("set name `{}`: expected 1 to {} of A-Z a-z 0-9 . _ -, each once",
                                           set.name, SIEVE_NAME_BYTES - 1));
        const LiveSet* before = live.find(set.name);
        if (before == nullptr && set.map_fd < 0) return usage_error(fmt::format("no set {}", set.name));
        std::uint32_t slot = 0;
        sieve_slot note{};
        if (before != nullptr) {
            slot = before->slot;
            note = present.slot[slot];
        } else {
            slot = *free.begin(); // there are as many as two tables need
            free.erase(slot);
            if (!stats) {
                SIEVE_ASSIGN(stats, read_stats(*instance_));
            }
            note.baseline = stats->hit[slot];
            set.name.copy(note.name, sizeof(note.name) - 1);
        }
        if (set.map_fd >= 0) {
            SIEVE_ASSIGN(note.map_id, map_id(set.map_fd));
        }
        policy.slot[slot] = note;
        policy.entry[policy.sets++] = {static_cast<__u8>(slot), static_cast<__u8>(set.action), {}};
    }
    return policy;
}

Status SetTable::replace(const WantedTable& wanted) {
    SIEVE_TRY(settle());
    const std::uint32_t bank = active();
    const sieve_policy present = read_bank(bank);
    SIEVE_ASSIGN(const sieve_policy target, policy_of(wanted, present));
    if (std::memcmp(&target, &present, sizeof(target)) == 0) return {};

    step("begin");
    instance_->control().changing = 1;
    if (Status written = write_bank(bank ^ 1, present, target); !written) {
        (void)settle(); // if that does not work either, the next controller does it
        return written;
    }
    step("flip");
    // The program must not see the new bank before it is written. Both sides are ordinary memory here, so the
    // order of the stores is all there is to take care of.
    std::atomic_thread_fence(std::memory_order_release);
    instance_->control().active = bank ^ 1;
    step("grace");
    SIEVE_TRY(grace_period());
    SIEVE_TRY(write_bank(bank, present, target));
    step("settled");
    instance_->control().changing = 0;
    return {};
}

} // namespace sieve::kernel
