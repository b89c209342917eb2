// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the verbs that put sets into the kernel have in common: from the argument to the tested map.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "libsieve/image/image.hpp"
#include "libsieve/kernel/filter_map.hpp"
#include "libsieve/kernel/preflight.hpp"
#include "libsieve/kernel/scratch.hpp"
#include "libsieve/kernel/set_table.hpp"
#include "xdp-sieve/context.hpp"

namespace sieve::cli {

// What a match does, as `load` and the program say it.
struct SetAction {
    sieve_action action = SIEVE_ACTION_DROP;
    std::uint32_t target = 0; // of a redirecting action
};

// NAME=IMAGE|FEED[,action=drop|pass|count|,redirect=DEVICE|,redirect=cpu:NUMBER][,verify[=FEED]]
struct SetArgument {
    std::string name;
    std::string path;
    std::optional<SetAction> action;
    std::optional<std::string> verify; // the feed to verify matches with; empty: the set's own
};

Result<SetArgument> parse_set_argument(const std::string& text);

// "drop", "pass", "count" or "redirect".
const char* action_name(sieve_action action);

// The same, and where to: "redirect=eth1", "redirect=cpu:3".
std::string describe_action(SetAction action);

// Adds the members "action" and, of a redirecting one, "target".
void add_action(nlohmann::json& out, SetAction action);

// "pass" or "drop", as `--default` takes it.
Result<sieve_action> parse_default(const std::string& text);

// What a set does that was given no action: the opposite of the default. A match that changes nothing would
// make the set pointless.
SetAction natural_action(sieve_action default_action);

// A set whose map is in the kernel but not in force.
struct ReadySet {
    std::string name;
    Image image;
    kernel::FilterMap map;
    std::optional<kernel::ExactMap> exact;
    kernel::PreflightReport preflight;

    // The descriptor that WantedSet takes.
    [[nodiscard]] int exact_fd() const { return exact ? exact->fd() : -1; }
};

// Sets that were tested, and the instance that they were tested in: set i stands in slot i of both its banks.
struct ReadySets {
    std::vector<ReadySet> sets;
    kernel::Scratch scratch;
};

// Opens or builds every set, brings it into the kernel and has it tested there. `frags`: load the program for
// multi-buffer frames, too, for an instance that is to be put into service.
Result<ReadySets> prepare_sets(const std::vector<SetArgument>& arguments, bool frags, const Context& context);

// The set in --json output of the verbs that put it into force.
nlohmann::json to_json(const ReadySet& set);

// "bad: 1,234 keys, 2.4 MiB; tested: 512 members, 10,000 strangers of which 3 matched (2.7 expected), 21 ms"
std::string describe(const ReadySet& set);

} // namespace sieve::cli
