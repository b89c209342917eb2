// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/reconcile/largest_part.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/service/live/range_set_configuration.hpp"

namespace sieve::service {

namespace {

bool may_be_one_sets(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::lockout:
    case ErrorKind::bad_input:
    case ErrorKind::invalid_request:
    case ErrorKind::kernel_refused:
    case ErrorKind::no_native_mode:
    case ErrorKind::out_of_memory:
        return true;
    default: // the hook is another one by now, or cannot be changed at all
        return false;
    }
}

bool changes_table(const HookPlan& plan) {
    if (plan.step == HookStep::attach) return plan.default_action == SIEVE_ACTION_DROP;
    return plan.default_before || plan.unreadable_before || plan.replies_before ||
           !plan.order_before.empty() || std::ranges::any_of(plan.sets, &SetPlan::goes);
}

// What changes, in parts that change as one. Names of sets; the empty name stands for the table as a whole.
std::vector<std::vector<std::string>> parts_of(const HookPlan& plan, const WantedVersions& wanted) {
    std::vector<std::vector<std::string>> parts;
    std::map<std::string, std::size_t> places;
    const auto part_of = [&](const std::string& set) {
        const auto version = wanted.find(set);
        if (version != wanted.end() && version->second.together) return std::string();
        for (const SetPlan& owner : plan.sets)
            if (live::range_set_name(owner.name) == set) return owner.name;
        return set;
    };
    for (const SetPlan& set : plan.sets) {
        if (!set.changes() || set.goes) continue;
        const auto [place, is_new] = places.try_emplace(part_of(set.name), parts.size());
        if (is_new) parts.emplace_back();
        parts[place->second].push_back(set.name);
    }
    if (changes_table(plan)) parts.push_back({std::string()});
    return parts;
}

} // namespace

std::optional<HookPlan> largest_part(const HookPlan& refused, const Error& why, const WantedVersions& wanted,
                                     const std::function<HookPlan(const HeldBack& held)>& plan,
                                     const std::function<Status(const HookPlan& plan)>& try_out) {
    if (refused.entry == nullptr || !may_be_one_sets(why.kind)) return std::nullopt;
    const std::vector<std::vector<std::string>> parts = parts_of(refused, wanted);
    HeldBack held = refused.held;
    for (const auto& part : parts)
        for (const std::string& name : part) held.emplace(name, why);
    std::optional<HookPlan> largest;
    for (const auto& part : parts) {
        HeldBack rest = held;
        for (const std::string& name : part) rest.erase(name);
        HookPlan more = plan(rest);
        const Status taken = more.obstacle ? tl::unexpected(*more.obstacle) : try_out(more);
        if (taken) {
            held = std::move(rest);
            largest = std::move(more);
        } else {
            for (const std::string& name : part) held[name] = taken.error();
        }
    }
    if (!largest) return std::nullopt;
    held.merge(largest->held); // such as one whose target went meanwhile
    largest->held = std::move(held);
    return largest;
}

} // namespace sieve::service
