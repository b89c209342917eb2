// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Finds the sets of a table that one lookup can answer for, and makes their joint filter (sieve/joint.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libsieve/control/kernel.hpp"
#include "libsieve/control/observer.hpp"
#include "libsieve/control/ready_set.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

// Why a joint filter cannot answer for a set with this filter; empty if it can.
[[nodiscard]] std::string cannot_be_joined(const sieve_lookup& lookup, bool verified);

// A joint filter that is in the kernel and has answered correctly there, but is not in force.
struct Joined {
    JointFilter filter;
    SetMaps maps;                  // keeps the filter's map
    std::vector<std::string> sets; // in the order of their numbers

    [[nodiscard]] kernel::WantedJoint wanted() const { return {.map_fd = maps.filter_fd, .sets = sets}; }
};

// A set that a joint filter may answer for.
struct Joinable {
    std::string name{};
    int filter_fd = -1;           // its own filter's map
    const KeySet* keys = nullptr; // not empty
    double rate = 1;              // false positive rate of its own filter
    // What it promises not to match. None of it is a member.
    std::span<const sieve_exception> exceptions{};
};

// Of the fields of some sets, those that most of them have, and the first of these; 0 if there is no set.
[[nodiscard]] std::uint32_t fields_to_join(std::span<const std::uint32_t> fields);

// Those of the sets that have the same fields. If there are several such groups, the largest, and the first
// of these. The observer is told which sets are left out. Empty if fewer than two are left.
[[nodiscard]] std::vector<Joinable> largest_group(std::vector<Joinable> sets, const Observer& observer);

// Makes the joint filter of these sets, at least two, which have the same fields. Its rate is as low as the
// lowest of the sets' own rates, but not below 1e-9.
//
// It names no set for one of the set's exceptions, and no set for one of `spared`, unless the set holds the
// key: addresses that this host lives by, for example. The builder tries other hash keys until that is so. If
// there are many such keys, it lowers the rate, so that two tries suffice on average.
//
// Errors: those of JointFilter::build() and Kernel::bring_in_joint(); bad_input if the tries run out, which
// the rate makes impossible in practice.
[[nodiscard]] Result<Joined> make_joint(Kernel& kernel, kernel::HookPoint point,
                                        std::span<const Joinable> sets, std::span<const sieve_key> spared,
                                        const Observer& observer);

} // namespace sieve::control
