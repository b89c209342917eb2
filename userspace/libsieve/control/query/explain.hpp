// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a table in force says about a key, and what becomes of packets with that key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/query/status.hpp"
#include "libsieve/control/spec/condition.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// A set's answer about the key.
struct SetAnswer {
    SetStatus status;
    std::uint32_t lacking = 0; // fields that the set needs and the key does not have: the set was not asked
    bool matched = false;      // the set holds the key
    Met met = Met::yes;        // whether packets with the key meet the set's condition

    [[nodiscard]] bool asked() const { return lacking == 0; }
};

struct Explanation {
    sieve_action default_action = SIEVE_ACTION_PASS;
    std::vector<SetAnswer> sets;           // in their order
    std::optional<std::size_t> decided_by; // index of the deciding set; nothing: the default decides
    // Sets that are asked before the decision, and that the key says too little about: it lacks their fields,
    // or those of their condition. If one of them matches a packet, that set decides.
    std::vector<std::size_t> open;
    // The table lets replies pass, and the decision is drop. Whether packets with the key answer a flow of
    // this host; nothing if the key lacks fields, so that some may.
    bool replies = false;
    std::optional<bool> is_reply{};
    std::uint32_t joint_id = 0; // the table's joint filter, which was asked like a packet asks it

    [[nodiscard]] bool matched() const;
};

// Asks the very filters in force, and the exact sets behind them, in a copy of the program that no interface
// has. `fields` are those that the key has. Errors: bad_input if no packet can carry the key; those of
// loading the program.
[[nodiscard]] Result<Explanation> explain(Kernel& kernel, const kernel::Hook& hook, const sieve_key& key,
                                          std::uint32_t fields);

// The fields of a key that somebody wrote, by the sets in force: each set's fields with which the text is a
// key. The message of an error lists them. Errors: bad_input if no set has such keys; invalid_request if
// several have, of different fields.
[[nodiscard]] Result<std::uint32_t> fields_of_text(const TableStatus& table, const std::string& text);

} // namespace sieve::control
