// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A whole table of sets as an operator wants it on one hook of one interface.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sieve/policy.h>

#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/programs/hook_point.hpp"

namespace sieve::control {

// How many flows are remembered for replies. One memory serves the whole network namespace.
struct WantedFlows {
    std::optional<std::uint64_t> most{}; // nothing: by the machine's memory, or as many as now
    bool if_new = false;                 // a memory of another size that is in use already will do
};

struct TableSpec {
    std::string interface {};
    kernel::HookPoint point = kernel::HookPoint::xdp;
    std::vector<SetSpec> sets; // asked in this order
    sieve_action default_action = SIEVE_ACTION_PASS;
    // Drop or pass: what becomes of packets that the parser cannot read to their end (enum sieve_outcome).
    sieve_action unreadable = SIEVE_ACTION_DROP;
    // Pass or drop: what becomes of a packet that would be dropped, if it answers a flow that this host or a
    // network behind it began. Nothing: see replies_of().
    std::optional<sieve_action> replies{};
    WantedFlows flows{}; // remembered for that

    // For attaching, if our program is not there yet.
    kernel::ModeChoice mode = kernel::ModeChoice::automatic;
    std::optional<std::uint32_t> priority{}; // among programs that share the hook; see DispatcherRank
    std::optional<std::uint32_t> chain{};
    // Replaces somebody else's program; and replaces an allowlist by a table that lets everybody in, or
    // nobody.
    bool force = false;
    // Sets that are in force keep their counters, even those that get another list or another action.
    bool keep_counters = false;
    // Sets built from feeds that have the same fields share one lookup (sieve/joint.h). Takes the filters'
    // memory and the building time once more.
    bool join = false;
    // Sets in force that this table lacks go.
    bool replace = false;
};

// The words for the ways to choose a mode.
struct ModeWord {
    kernel::ModeChoice choice;
    std::string_view word;
};
inline constexpr ModeWord mode_words[] = {{kernel::ModeChoice::automatic, "auto"},
                                          {kernel::ModeChoice::native, "native"},
                                          {kernel::ModeChoice::skb, "skb"}};

// The mode that a word stands for; nothing if the word is unknown.
[[nodiscard]] constexpr std::optional<kernel::ModeChoice> parse_mode(std::string_view word) {
    for (const ModeWord& mode : mode_words)
        if (word == mode.word) return mode.choice;
    return std::nullopt;
}

} // namespace sieve::control
