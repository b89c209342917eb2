// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the program does with a packet, and why.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sieve/policy.h>

#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

struct Replayed {
    std::uint32_t verdict = 0; // enum sieve_verdict
    sieve_trace trace{};
    const SetInForce* decided_by = nullptr; // nothing: the default, or no set was asked
};

class Replay {
  public:
    // An instance of its own with these sets.
    static Result<Replay> start(const WantedTable& table, HookPoint point = HookPoint::xdp);

    // One frame. The kernel does not run a program on less than an Ethernet header, nor tc's on less than an
    // IP header: such a frame is answered here as the program answers every cut header. Of a long frame the
    // first longest_run bytes are run; only a chain of IPv6 extension headers that is longer makes a
    // difference (it counts as cut off).
    [[nodiscard]] Result<Replayed> run(std::span<const std::uint8_t> frame) const;

    [[nodiscard]] const TableInForce& table() const { return table_; }

  private:
    Replay(Scratch scratch, TableInForce table) : scratch_(std::move(scratch)), table_(std::move(table)) {}

    Scratch scratch_;
    TableInForce table_;
};

} // namespace sieve::kernel
