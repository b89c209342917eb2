// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/join.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/header.hpp"

namespace sieve::control {

namespace {

// A short list's filter may have a far lower rate. It is not worth more than 32 bits for each key of all
// sets.
constexpr double lowest_rate = 1e-9;

std::vector<const ReadySet*> largest_group(std::span<const ReadySet> sets, const Observer& observer) {
    std::map<std::uint32_t, std::vector<const ReadySet*>> groups; // by fields
    for (const ReadySet& set : sets) {
        if (const std::string reason = cannot_be_joined(set); !reason.empty())
            observer.remark(fmt::format("set {} is not joined: {}", set.name, reason));
        else
            groups[set.image.lookup().fields].push_back(&set);
    }
    std::vector<const ReadySet*> largest;
    for (const ReadySet& set : sets) {
        const auto found = groups.find(set.image.lookup().fields);
        if (found != groups.end() && found->second.size() > largest.size()) largest = found->second;
    }
    for (const auto& [fields, group] : groups)
        if (!largest.empty() && fields != largest.front()->image.lookup().fields)
            for (const ReadySet* const set : group)
                observer.remark(fmt::format("set {} is not joined: more sets have other fields", set->name));
    return largest;
}

} // namespace

std::string cannot_be_joined(const ReadySet& set) {
    const sieve_lookup& lookup = set.image.lookup();
    const FilterKind& kind = kind_of(lookup);
    if (set.maps.verified()) return "its matches are verified";
    if (kind.exact() != nullptr) return fmt::format("kind {} is exact", kind.facts().name);
    if (kind.facts().changes_live)
        return fmt::format("keys come to and go from a filter of kind {}", kind.facts().name);
    if (lookup.probes != 0) return "it has prefixes";
    if (!set.image.exceptions().empty()) return "it has exceptions";
    if (!set.keys) return "an image does not list its keys";
    return {};
}

Result<std::optional<Joined>> join(Kernel& kernel, kernel::HookPoint point, std::span<const ReadySet> sets,
                                   const Observer& observer) {
    const std::vector<const ReadySet*> group = largest_group(sets, observer);
    if (group.size() < SIEVE_JOINT_LEAST_SETS) {
        observer.remark("nothing is joined: that takes two sets of the same fields");
        return std::optional<Joined>();
    }
    double rate = 1;
    std::vector<const KeySet*> keys;
    std::vector<std::string> names;
    for (const ReadySet* const set : group) {
        rate = std::min(rate, rate_from_bits(set->image.file().expected_fpr));
        keys.push_back(&*set->keys);
        names.push_back(set->name);
    }
    SIEVE_ASSIGN(JointFilter filter,
                 JointFilter::build(keys,
                                    {.fpr = std::max(rate, lowest_rate), .bits_per_key = {}, .seed = {}},
                                    observer.progress));
    SIEVE_ASSIGN(SetMaps maps, kernel.bring_in_joint(point, filter, group));
    return std::optional<Joined>(
        {.filter = std::move(filter), .maps = std::move(maps), .sets = std::move(names)});
}

} // namespace sieve::control
