// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a joint filter is to be built from, for whoever builds it: this process, or a child of the service.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <sieve/image.h>

#include "libsieve/control/spec/observer.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// One of the sets of a joint filter, without its keys. All but the name is that of the set's own filter.
struct JointSet {
    std::string name{};
    std::uint32_t fields = 0;
    double rate = 1; // false positive rate
    // What tells whether a list is the one that the filter was built from.
    std::array<std::uint64_t, SIEVE_HASH_KEY_WORDS> hash_key{};
    std::uint64_t keys = 0;
    std::array<std::uint64_t, 2> key_sum{};
    std::vector<sieve_exception> exceptions{}; // what it promises not to match. None of it is a member
};

// The set of this filter.
[[nodiscard]] JointSet joint_set_of(const std::string& name, const sieve_lookup& lookup,
                                    const sieve_file& file, std::span<const sieve_exception> exceptions);

struct JointTask {
    std::vector<JointSet> sets{}; // in the order of their numbers, all of the same fields
    // No set is named for one of these keys unless the set holds it: addresses that this host lives by, for
    // example.
    std::vector<sieve_key> spared{};

    // The rate of each set that the joint filter must have: as low as the lowest of the sets' own rates, but
    // not below 1e-9. If there are many exceptions and spared keys, it is lower, so that two tries suffice on
    // average.
    [[nodiscard]] double rate() const;
};

// Refuses a list that is not the one that the set's filter was built from. Compares the fields, the number of
// distinct keys and the sums of their hashes (filters/placement/hash_sum.hpp).
[[nodiscard]] Status check_list(const JointSet& set, const KeySet& keys);

// Builds the joint filter of these lists, one for each of the task's sets. It has about the task's rate, and
// names no set for one of the set's exceptions, nor any set for a spared key. The builder tries other hash
// keys until that is so. Only tests give a seed: it makes the filters reproducible and their secrets known.
//
// Errors: those of JointFilter::build(); bad_input if the tries run out, which the rate makes impossible in
// practice.
[[nodiscard]] Result<JointFilter> build_joint(const JointTask& task, std::span<const KeySet* const> lists,
                                              const Observer& observer,
                                              std::optional<std::uint64_t> seed = std::nullopt);

// Whether the set with that number holds the key.
using Holds = std::function<bool(std::size_t set, const sieve_key& key)>;

// Checks what somebody else has built. The filter must be one of these sets, of about their number of keys,
// with the task's rate; each of `members`, some of the keys of each set, must get the number of its set or of
// an earlier set that holds it; exceptions and spared keys as above. bad_input says what is wrong.
[[nodiscard]] Status check_joint(const JointFilter& filter, const JointTask& task,
                                 std::span<const std::span<const sieve_witness>> members, const Holds& holds);

} // namespace sieve::control
