// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/scratch.hpp"

#include <cerrno>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/refusal.hpp"

namespace sieve::kernel {

Result<Scratch> Scratch::load(bool tracing) {
    SIEVE_ASSIGN(BpfObject object, BpfObject::load({.tracing = tracing, .frags = false}));
    return Scratch(std::move(object));
}

Status Scratch::ask_only(int map_fd) const {
    volatile sieve_control& control = instance().control();
    const auto bank = static_cast<std::uint32_t>(control.active & (SIEVE_BANKS - 1));
    const std::uint32_t place = bank * SIEVE_SLOTS;
    if (const int error = bpf_map_update_elem(instance().sets_fd(), &place, &map_fd, BPF_ANY); error != 0)
        return refusal("putting a filter into the table of sets", error,
                       "the kernel must know BPF_F_INNER_MAP (Linux 5.10)");
    volatile sieve_policy& policy = control.bank[bank];
    policy.entry[0].slot = 0;
    policy.entry[0].action = SIEVE_ACTION_DROP;
    policy.default_action = SIEVE_ACTION_PASS;
    policy.sets = 1;
    return {};
}

Result<std::uint32_t> Scratch::run(std::span<const std::uint8_t> frame) const {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    options.data_in = frame.data();
    options.data_size_in = static_cast<std::uint32_t>(frame.size());
    options.repeat = 1;
    int error = 0;
    do {
        error = bpf_prog_test_run_opts(object_.program_fd(), &options);
    } while (error != 0 && errno == EINTR);
    if (error != 0)
        return refusal(fmt::format("running the program on a packet of {} bytes", frame.size()), error);
    return options.retval;
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
