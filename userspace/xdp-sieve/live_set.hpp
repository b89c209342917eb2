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
#include "libsieve/kernel/set_table.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

// NAME=IMAGE|FEED[,action=drop|pass|count]
struct SetArgument {
    std::string name;
    std::string path;
    std::optional<sieve_action> action;
};

Result<SetArgument> parse_set_argument(const std::string& text);

// "drop", "pass" or "count".
const char* action_name(sieve_action action);

// "pass" or "drop", as `--default` takes it.
Result<sieve_action> parse_default(const std::string& text);

// What a set does that was given no action: the opposite of the default. A match that changes nothing would
// make the set pointless.
sieve_action natural_action(sieve_action default_action);

// A set whose map is in the kernel but not in force.
struct ReadySet {
    std::string name;
    Image image;
    kernel::FilterMap map;
    kernel::PreflightReport preflight;
};

// Opens or builds every set, brings it into the kernel and has it tested there.
Result<std::vector<ReadySet>> prepare_sets(const std::vector<SetArgument>& arguments, const Context& context);

// The set in --json output of the verbs that put it into force.
nlohmann::json to_json(const ReadySet& set);

// "bad: 1,234 keys, 2.4 MiB; tested: 512 members, 10,000 strangers of which 3 matched (2.7 expected), 21 ms"
std::string describe(const ReadySet& set);

} // namespace sieve::cli
