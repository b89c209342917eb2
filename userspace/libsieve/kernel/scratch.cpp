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
