// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Describes a set that was put in force, in words and as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "libsieve/control/access/ready_set.hpp"
#include "libsieve/control/spec/set_action.hpp"
#include "xdp-sieve/arguments/context.hpp"

namespace sieve::cli {

using control::action_name;
using control::describe_action;
using control::SetAction;

// Adds the member "action". For a redirecting action, also adds "target" and "target_state".
void add_action(nlohmann::json& out, SetAction action);

// The set, in the --json output of commands that put it in force.
nlohmann::json to_json(const control::ReadySet& set);

// "bad: 1,234 keys, 2.4 MiB; tested in 21 ms: 512 members matched, 3 of 10,000 non-members did (2.7
// expected)"
std::string describe(const control::ReadySet& set);

// Prints the remarks on the set's test that a person should know about.
void remark_on_test(const control::ReadySet& set, const Context& context);

} // namespace sieve::cli
