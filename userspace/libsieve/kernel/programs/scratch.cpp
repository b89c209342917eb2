// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/programs/scratch.hpp"

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>

#include <algorithm>
#include <cerrno>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/bank_filters.hpp"
#include "libsieve/kernel/maps/stats.hpp"

namespace sieve::kernel {

namespace {

// The verdict that a tc action stands for, as in bpf/hook_tc.h.
std::uint32_t verdict_of_tc(std::uint32_t action) {
    if (action == TC_ACT_SHOT) return SIEVE_VERDICT_DROP;
    return action == TC_ACT_REDIRECT ? SIEVE_VERDICT_REDIRECT : SIEVE_VERDICT_PASS;
}

} // namespace

Result<Scratch> Scratch::load(bool tracing, HookPoint point) {
    SIEVE_ASSIGN(BpfObject object, BpfObject::load({.tracing = tracing, .frags = false, .point = point}));
    return Scratch(std::move(object));
}

Result<Scratch> Scratch::load_with(const std::function<Result<Sets>()>& make_sets, bool frags,
                                   HookPoint point) {
    std::vector<int> exact;
    const auto make_filters = [&]() -> Result<std::vector<int>> {
        SIEVE_ASSIGN(Sets sets, make_sets());
        exact = std::move(sets.exact);
        return std::move(sets.filters);
    };
    SIEVE_ASSIGN(
        BpfObject object,
        BpfObject::load({.tracing = false, .frags = frags, .filters = make_filters, .point = point}));
    if (std::any_of(exact.begin(), exact.end(), [](int fd) { return fd >= 0; })) {
        SIEVE_ASSIGN(const UniqueFd outer, open_map(object.instance().rare().exact));
        SIEVE_TRY(fill_both_banks(outer.get(), exact));
    }
    return Scratch(std::move(object));
}

Result<BpfObject> Scratch::release() && {
    for (volatile sieve_policy& bank : instance().control().bank) {
        bank.sets = 0;
        bank.default_action = SIEVE_ACTION_PASS;
        bank.unreadable = SIEVE_ACTION_PASS;
    }
    instance().control().trial = 0;
    SIEVE_TRY(clear_stats(instance()));
    SIEVE_TRY(object_.wait_until_filled());
    return std::move(object_);
}

Status Scratch::ask_only(int map_fd, int exact_fd) const {
    SIEVE_TRY(put_fds(0, map_fd, exact_fd));
    ask_slot(0, exact_fd >= 0);
    return {};
}

Status Scratch::put_in(std::uint32_t slot, std::uint32_t map_id, std::uint32_t exact_id) const {
    SIEVE_ASSIGN(const UniqueFd map, open_map(map_id));
    UniqueFd exact;
    if (exact_id != 0) {
        SIEVE_ASSIGN(exact, open_map(exact_id));
    }
    return put_fds(slot, map.get(), exact.get());
}

Status Scratch::put_fds(std::uint32_t slot, int map_fd, int exact_fd) const {
    volatile sieve_control& control = instance().control();
    const auto bank = static_cast<std::uint32_t>(control.active & (SIEVE_BANKS - 1));
    const std::uint32_t index = bank * SIEVE_SLOTS + slot;
    if (const int error = bpf_map_update_elem(instance().sets_fd(), &index, &map_fd, BPF_ANY); error != 0)
        return refusal("putting a filter into the table of sets", error,
                       "the kernel must know BPF_F_INNER_MAP (Linux 5.10)");
    if (exact_fd >= 0) {
        SIEVE_ASSIGN(const UniqueFd outer, open_map(instance().rare().exact));
        if (const int error = bpf_map_update_elem(outer.get(), &index, &exact_fd, BPF_ANY); error != 0)
            return refusal("putting an exact set into the table of sets", error);
    }
    return {};
}

void Scratch::ask_slot(std::uint32_t slot, bool verified) const {
    volatile sieve_control& control = instance().control();
    volatile sieve_policy& policy = control.bank[control.active & (SIEVE_BANKS - 1)];
    policy.entry[0].slot = static_cast<__u8>(slot);
    policy.entry[0].action = SIEVE_ACTION_DROP;
    policy.entry[0].flags = verified ? SIEVE_ENTRY_VERIFY : 0;
    policy.default_action = SIEVE_ACTION_PASS;
    policy.sets = 1;
}

Result<std::uint32_t> Scratch::run(std::span<const std::uint8_t> frame, std::uint32_t segment) const {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    options.data_in = frame.data();
    options.data_size_in = static_cast<std::uint32_t>(frame.size());
    options.repeat = 1;
    __sk_buff packet{};
    packet.gso_size = segment;
    if (segment != 0) {
        options.ctx_in = &packet;
        options.ctx_size_in = sizeof(packet);
    }
    int error = 0;
    do {
        error = bpf_prog_test_run_opts(object_.program_fd(), &options);
    } while (error != 0 && errno == EINTR);
    if (error != 0)
        return refusal(fmt::format("running the program on a packet of {} bytes", frame.size()), error);
    return object_.point() == HookPoint::xdp ? options.retval : verdict_of_tc(options.retval);
}

bool Scratch::can_run(std::span<const std::uint8_t> frame) const {
    if (frame.size() < shortest_run || frame.size() > longest_run) return false;
    if (object_.point() == HookPoint::xdp) return true;
    const unsigned type = frame[12] << 8U | frame[13];
    const std::size_t header = type == ETH_P_IP ? sizeof(iphdr) : type == ETH_P_IPV6 ? sizeof(ipv6hdr) : 1;
    return frame.size() >= shortest_run + header;
}

sieve_trace Scratch::trace() const {
    sieve_trace copy{};
    const volatile sieve_trace& last = object_.trace();
    for (int i = 0; i < SIEVE_KEY_WORDS; i++) copy.key.word[i] = last.key.word[i];
    copy.have = last.have;
    copy.outcome = last.outcome;
    copy.verdict = last.verdict;
    copy.decision = last.decision;
    copy.hits = last.hits;
    return copy;
}

} // namespace sieve::kernel
