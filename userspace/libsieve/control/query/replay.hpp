// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What would become of packets: the real program judges them with these sets, without an interface.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/source.hpp"
#include "libsieve/control/spec/table_spec.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// Loads the table's sets into their own copy of the program, from the inputs that find_inputs() gave for
// them. The spec's interface, mode and rank are ignored.
[[nodiscard]] Result<std::unique_ptr<Replayer>>
start_replay(Kernel& kernel, const TableSpec& spec, std::vector<SetInputs> inputs, const Observer& observer);

struct ReplayTotals {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0; // on the wire
    std::uint64_t passed = 0;
    std::uint64_t dropped = 0;
    std::uint64_t redirected = 0;
    std::array<std::uint64_t, SIEVE_SLOTS> hits{};
    std::array<std::uint64_t, SIEVE_OUTCOME_SLOTS> outcomes{};
    std::uint64_t by_default = 0;

    void add(const kernel::Replayed& packet, std::uint64_t length);
};

} // namespace sieve::control
