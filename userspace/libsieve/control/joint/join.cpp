// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/joint/join.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::control {

namespace {

// Of one set: as many as the kernel is asked about in all (kernel/programs/joint_preflight.hpp).
constexpr std::size_t most_members = 4096;

} // namespace

std::string cannot_be_joined(const sieve_lookup& lookup, bool verified) {
    const FilterKind& kind = kind_of(lookup);
    if (verified) return "its matches are verified";
    if (kind.exact() != nullptr && kind.exact()->has_marks(lookup)) return "it marks its hits";
    if (kind.exact() != nullptr)
        return kind.exact()->is_of_keys() ? "" : fmt::format("kind {} holds ranges", kind.facts().name);
    if (kind.facts().changes_live)
        return fmt::format("keys come to and go from a filter of kind {}", kind.facts().name);
    if (lookup.probes != 0) return "it has prefixes";
    return {};
}

Result<std::string> cannot_be_joined(Filters& kernel, const kernel::SetInForce& set) {
    SIEVE_ASSIGN(const kernel::FilterHeader header, kernel.read_filter(set.map_id));
    std::string reason = cannot_be_joined(header.lookup, set.exact_id != 0);
    const ExactKind* const exact = kind_of(header.lookup).exact();
    if (!reason.empty() || exact == nullptr) return reason;
    SIEVE_ASSIGN(const std::unique_ptr<RunningFilter> filter, kernel.open_filter(set.map_id));
    // Whether there is such a key now does not matter: one that comes needs no other filter.
    if (exact->has_ends(filter->lookup(), filter->lines())) reason = "its keys may end";
    return reason;
}

std::uint32_t fields_to_join(std::span<const std::uint32_t> fields) {
    const auto count = [&](std::uint32_t one) { return std::ranges::count(fields, one); };
    std::uint32_t most = 0;
    for (const std::uint32_t one : fields)
        if (count(one) > count(most)) most = one;
    return most;
}

std::vector<Joinable> largest_group(std::vector<Joinable> sets, const Observer& observer) {
    std::vector<std::uint32_t> all;
    for (const Joinable& one : sets) all.push_back(one.set.fields);
    const std::uint32_t fields = fields_to_join(all);
    std::erase_if(sets, [&](const Joinable& one) {
        if (one.set.fields == fields) return false;
        observer.remark(fmt::format("set {} is not joined: more sets have other fields", one.set.name));
        return true;
    });
    if (sets.size() < SIEVE_JOINT_LEAST_SETS) {
        observer.remark("nothing is joined: that takes two sets of the same fields");
        sets.clear();
    }
    return sets;
}

std::vector<sieve_witness> sample_members(const KeySet& keys) {
    std::vector<sieve_witness> sample;
    const std::size_t count = std::min(keys.size(), most_members);
    for (std::size_t i = 0; i < count; i++) sample.push_back({keys.at(i * keys.size() / count), {}});
    return sample;
}

Result<Joined> make_joint(Trials& kernel, kernel::HookPoint point, std::span<const Joinable> sets,
                          std::vector<sieve_key> spared, const BuildJoint& build) {
    JointTask task{.sets = {}, .spared = std::move(spared)};
    std::vector<kernel::JoinedSet> joined;
    std::vector<std::string> names;
    std::vector<std::span<const sieve_witness>> members;
    for (const Joinable& one : sets) {
        task.sets.push_back(one.set);
        joined.push_back({.name = one.set.name, .filter_fd = one.filter_fd, .members = one.members});
        names.push_back(one.set.name);
        members.emplace_back(one.members);
    }
    SIEVE_ASSIGN(JointFilter filter, build(task));
    SIEVE_TRY(check_joint(filter, task, members,
                          [&](std::size_t set, const sieve_key& key) { return sets[set].holds(key); }));
    SIEVE_ASSIGN(SetMaps maps, kernel.bring_in_joint(point, filter, joined));
    return Joined{.filter = std::move(filter), .maps = std::move(maps), .sets = std::move(names)};
}

} // namespace sieve::control
