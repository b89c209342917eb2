// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a match with a set does: as it is wanted, and as the kernel holds it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sieve/policy.h>

#include "libsieve/control/spec/condition.hpp"
#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// What is to be known of an action outside the packet path. There is one list: names, parsing, help,
// completion, explanations, guards and the status page go through it.
struct ActionFacts {
    sieve_action number;
    const char* name; // for people, JSON and metrics
    bool by_name;     // "action=NAME" asks for it; any other has an option of its own, such as limit=
    bool decides;     // a match ends the packet's way through the sets
    bool may_drop;    // a match may drop the packet
    bool takes;       // a match may keep the packet from where it goes
    bool lets_in;     // a match gets past a default of drop
};

[[nodiscard]] std::span<const ActionFacts> set_actions();
// An action of a newer program is called "unknown", and may take a packet anywhere.
[[nodiscard]] const ActionFacts& facts_of(sieve_action action);

// "drop|pass|count": what action= takes.
[[nodiscard]] std::string action_names(std::string_view separator = "|");
[[nodiscard]] bool is_action_name(std::string_view text);

// How many packets a limit lets take the default: per second, and at once.
struct Limit {
    std::uint32_t rate = 0;
    std::uint32_t burst = 0;
};

// As it is wanted. A redirecting action names its target: an interface, or "cpu:3".
struct WantedAction {
    sieve_action action = SIEVE_ACTION_DROP; // if redirecting, either redirect: the target decides
    std::string target{};
    Limit limit{}; // of SIEVE_ACTION_LIMIT
};

// As the kernel holds it.
struct SetAction {
    sieve_action action = SIEVE_ACTION_DROP;
    std::uint32_t target = 0; // of a redirecting action: the interface's index or the CPU's number; of a
                              // limit: packets per second
    std::uint32_t burst = 0;  // of a limit: packets at once
    // What it drops stays dropped, even if it answers a flow that this host began, on a hook where such
    // replies pass.
    bool keeps_replies_out = false;
    // Which packets match: those that meet it and whose key is in the set.
    sieve_condition condition{};

    [[nodiscard]] friend constexpr bool operator==(const SetAction&, const SetAction&) = default;
};

[[nodiscard]] inline SetAction action_of(const kernel::SetInForce& set) {
    return {set.action, set.target, set.burst, set.keeps_replies_out, set.condition};
}
[[nodiscard]] inline SetAction action_of(const kernel::WantedSet& set) {
    return {set.action, set.target, set.burst, set.keeps_replies_out, set.condition};
}

// Parses one of action_names(), or "limit=PPS[/BURST]". A redirecting action is given by its target instead.
// Error for any other text.
[[nodiscard]] Result<WantedAction> parse_action(const std::string& text);

// Parses "PPS" or "PPS/BURST": whole numbers of packets per second and packets at once. Without BURST, as
// many as in one second. Error if a number is out of the range of sieve/limit.h.
[[nodiscard]] Result<WantedAction> parse_limit(const std::string& text);

// The action of a set that names none: the opposite of the default. With the default itself, a match would
// change nothing, and the set would be pointless.
[[nodiscard]] SetAction natural_action(sieve_action default_action);

[[nodiscard]] inline bool may_drop(sieve_action action) {
    return facts_of(action).may_drop;
}
[[nodiscard]] inline bool takes_packets(sieve_action action) {
    return facts_of(action).takes;
}
[[nodiscard]] inline const char* action_name(sieve_action action) {
    return facts_of(action).name;
}

// The same with limit or target: "limit=1000/2000", "redirect=eth1", "redirect=cpu:3", "redirect=eth1
// (down)"; and with ",replies=drop" for a set that drops replies, and the condition: "drop,dport=22,443".
[[nodiscard]] std::string describe_action(SetAction action);

} // namespace sieve::control
