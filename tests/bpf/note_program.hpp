// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A copy of the noting program that no interface has, to show it packets (BPF_PROG_TEST_RUN).
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/pkt_cls.h>
#include <sieve/policy.h>

#include "bpf/packet.hpp"
#include "libsieve/kernel/hooks/flow_memory.hpp"
#include "sieve_note.skel.h"

namespace sieve::test {

class NoteProgram {
  public:
    explicit NoteProgram(sieve_link link = SIEVE_LINK_ETHERNET) : skeleton_(sieve_note_bpf::open()) {
        if (!skeleton_) throw std::runtime_error("opening the noting program");
        bpf_program__set_type(skeleton_->progs.sieve_note, BPF_PROG_TYPE_SCHED_CLS);
        skeleton_->data_note->sieve_note_control.link = link;
        if (sieve_note_bpf::load(skeleton_.get()) != 0)
            throw std::runtime_error("loading the noting program");
    }

    [[nodiscard]] int fd() const { return bpf_program__fd(skeleton_->progs.sieve_note); }

    void use(const kernel::FlowMemory& memory) const {
        const std::uint32_t zero = 0;
        const int inner = memory.fd();
        skeleton_->data_note->sieve_note_control.flows = memory.where();
        if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.sieve_flows), &zero, &inner, BPF_ANY) != 0)
            throw std::runtime_error("giving the flow memory to the noting program");
    }

    // Shows it a frame that leaves, `times` times. `segment`: not zero for one that awaits segmentation.
    void see(const Bytes& frame, std::uint32_t segment = 0, int times = 1) const {
        LIBBPF_OPTS(bpf_test_run_opts, options);
        options.data_in = frame.data();
        options.data_size_in = static_cast<std::uint32_t>(frame.size());
        options.repeat = times;
        __sk_buff packet{};
        packet.gso_size = segment;
        if (segment != 0) {
            options.ctx_in = &packet;
            options.ctx_size_in = sizeof(packet);
        }
        int error = 0;
        do {
            error = bpf_prog_test_run_opts(fd(), &options);
        } while (error != 0 && errno == EINTR);
        if (error != 0) throw std::runtime_error("running the noting program");
        if (static_cast<int>(options.retval) != TC_ACT_UNSPEC)
            throw std::runtime_error("the noting program changed a packet's fate");
    }
    void see(const Packet& packet) const { see(packet.bytes()); }

    // Over all CPUs.
    [[nodiscard]] sieve_note_counts counts() const {
        std::vector<sieve_note_counts> values(static_cast<std::size_t>(libbpf_num_possible_cpus()));
        const std::uint32_t zero = 0;
        if (bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.sieve_notes), &zero, values.data()) != 0)
            throw std::runtime_error("reading the noting program's counters");
        sieve_note_counts sum{};
        for (const sieve_note_counts& value : values) {
            sum.packets += value.packets;
            sum.begun += value.begun;
            sum.evicted += value.evicted;
            sum.refused += value.refused;
            sum.lost += value.lost;
        }
        return sum;
    }

  private:
    struct Destroy {
        void operator()(sieve_note_bpf* skeleton) const { sieve_note_bpf::destroy(skeleton); }
    };
    std::unique_ptr<sieve_note_bpf, Destroy> skeleton_;
};

} // namespace sieve::test
