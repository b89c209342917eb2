// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A change was made as asked, but may not do what its operator expects. Front ends print the warning with
// their advice.
#pragma once

#include <cstdint>
#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve::control {

enum class WarningKind : std::uint8_t {
    unfinished_checksums, // redirected packets may arrive with wrong checksums (facts: interface)
    tap_to_cpu,           // native redirection of a tap's packets to a CPU loses some (facts: interface)
    no_carrier,           // a redirection's target has no carrier
    smaller_mtu,          // a redirection's target takes shorter frames only
    one_buffer,           // a redirection's target takes frames of one buffer only
    sending_unknown,      // the kernel does not tell whether a redirection's target can send
    prefix_allowlist,     // false positives of prefixes pass, and nothing rejects them (facts: set)
    replies_unasked,      // answers to this host's flows pass, since the default is drop (facts: interface)
    answers_dropped,      // answers to this host's flows are dropped by default (facts: interface)
    filters_before,       // others' filters of tc are asked before our program (facts: interface)
    filters_before_notes, // likewise before the program that notes flows (facts: interface)
    changes_undone,       // single keys had changed, and went with the filter before (facts: set)
};

struct Warning {
    WarningKind kind = WarningKind::no_carrier;
    std::string message{}; // one sentence, without advice
    Facts facts{};
};

} // namespace sieve::control
