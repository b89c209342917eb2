// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A copy of the program that no interface has, to ask it about packets (BPF_PROG_TEST_RUN).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/kernel/programs/bpf_object.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// What BPF_PROG_TEST_RUN takes as the linear part of a packet: at least an Ethernet header, and with room for
// the kernel's own data no more than a page. The upper bound is chosen to hold for every kernel.
inline constexpr std::size_t shortest_run = 14;
inline constexpr std::size_t longest_run = 3072;

class Scratch {
  public:
    // With tracing, trace() tells what the program saw of the last packet.
    static Result<Scratch> load(bool tracing, HookPoint point = HookPoint::xdp);

    [[nodiscard]] const Instance& instance() const { return object_.instance(); }
    [[nodiscard]] SetTable table() const { return SetTable(object_.instance()); }

    // Filters, and the exact sets that verify them (-1 for none).
    struct Sets {
        std::vector<int> filters;
        std::vector<int> exact;
    };
    // With these sets in both banks, from slot 0 on. `make_sets` is called once, in another thread, while the
    // kernel verifies the program.
    static Result<Scratch> load_with(const std::function<Result<Sets>()>& make_sets, bool frags,
                                     HookPoint point = HookPoint::xdp);

    // Puts one set, verified by an exact set or not, in force: a match drops, all else passes. Writes to the
    // active bank directly: no packet runs through this copy, so no packet can see half of the change.
    [[nodiscard]] Status ask_only(int map_fd, int exact_fd = -1) const;
    // Puts a filter, and the exact set behind it, into a slot, by their maps' ids; 0 for no exact set.
    [[nodiscard]] Status put_in(std::uint32_t slot, std::uint32_t map_id, std::uint32_t exact_id) const;
    // The same as ask_only() for the set in that slot.
    void ask_slot(std::uint32_t slot, bool verified) const;

    // Runs the program on a frame of shortest_run to longest_run bytes; its verdict (enum sieve_verdict).
    // `segment`, at tc's hooks: not zero for a packet that awaits segmentation into parts of so many bytes.
    [[nodiscard]] Result<std::uint32_t> run(std::span<const std::uint8_t> frame,
                                            std::uint32_t segment = 0) const;

    // Whether the kernel runs the program on such a frame. At tc's hooks a frame that claims to be IP must
    // have at least the whole IP header.
    [[nodiscard]] bool can_run(std::span<const std::uint8_t> frame) const;

    [[nodiscard]] sieve_trace trace() const;
    [[nodiscard]] const BpfObject& object() const { return object_; }

    // Releases the instance, restored to its state before it was asked, so that it can go into service.
    [[nodiscard]] Result<BpfObject> release() &&;

  private:
    // -1: without an exact set.
    [[nodiscard]] Status put_fds(std::uint32_t slot, int map_fd, int exact_fd) const;

    explicit Scratch(BpfObject object) : object_(std::move(object)) { instance().control().trial = 1; }

    BpfObject object_;
};

} // namespace sieve::kernel
