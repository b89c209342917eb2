// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Finds the sets of a table that one lookup can answer for, and makes their joint filter (sieve/joint.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libsieve/control/access/filters.hpp"
#include "libsieve/control/access/ready_set.hpp"
#include "libsieve/control/access/trials.hpp"
#include "libsieve/control/joint/joint_task.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// Why a joint filter cannot answer for a set with this filter; empty if it can. A set in force may have keys
// that end, which the second form finds out. Errors of the second form: those of reading the filter.
[[nodiscard]] std::string cannot_be_joined(const sieve_lookup& lookup, bool verified);
[[nodiscard]] Result<std::string> cannot_be_joined(Filters& kernel, const kernel::SetInForce& set);

// A joint filter that is in the kernel and has answered correctly there, but is not in force.
struct Joined {
    JointFilter filter;
    SetMaps maps;                  // keeps the filter's map
    std::vector<std::string> sets; // in the order of their numbers

    [[nodiscard]] kernel::WantedJoint wanted() const { return {.map_fd = maps.filter_fd, .sets = sets}; }
};

// A set that a joint filter may answer for.
struct Joinable {
    JointSet set{};
    int filter_fd = -1;                                // its own filter's map
    std::vector<sieve_witness> members{};              // some of its keys, at least one
    std::function<bool(const sieve_key& key)> holds{}; // its own filter's answer
};

// Some of the keys, from all parts of the list.
[[nodiscard]] std::vector<sieve_witness> sample_members(const KeySet& keys);

// Of the fields of some sets, those that most of them have, and the first of these; 0 if there is no set.
[[nodiscard]] std::uint32_t fields_to_join(std::span<const std::uint32_t> fields);

// Those of the sets that have the same fields. If there are several such groups, the largest, and the first
// of these. The observer is told which sets are left out. Empty if fewer than two are left.
[[nodiscard]] std::vector<Joinable> largest_group(std::vector<Joinable> sets, const Observer& observer);

// Builds the joint filter of a task from its sets' lists.
using BuildJoint = std::function<Result<JointFilter>(const JointTask& task)>;

// Has the joint filter of these sets built, which are at least two and have the same fields; checks it, and
// brings it into the kernel. `spared`: see JointTask. Errors: those of `build`, check_joint() and
// Trials::bring_in_joint().
[[nodiscard]] Result<Joined> make_joint(Trials& kernel, kernel::HookPoint point,
                                        std::span<const Joinable> sets, std::vector<sieve_key> spared,
                                        const BuildJoint& build);

} // namespace sieve::control
