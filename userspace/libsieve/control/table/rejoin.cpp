// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/rejoin.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/control/spec/source.hpp"
#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::control {

namespace {

// A set of the table, with what its joint filter is built from.
struct JoinCandidate {
    Joinable joinable{};
    UniqueFd filter{};
    std::uint32_t map_id = 0;
};

Result<JoinCandidate> candidate_of(Kernel& kernel, const kernel::SetInForce& set) {
    SIEVE_ASSIGN(const std::shared_ptr<RunningFilter> running, kernel.open_filter(set.map_id));
    SIEVE_ASSIGN(UniqueFd filter, kernel.open_map(set.map_id));
    const int fd = filter.get();
    const sieve_lookup& lookup = running->lookup();
    const std::span<const sieve_witness> witnesses = running->witnesses();
    std::vector<sieve_witness> members(witnesses.begin(), witnesses.end());
    const auto holds = [running](const sieve_key& key) {
        const sieve_lookup& own = running->lookup();
        if (const ExactKind* const exact = kind_of(own).exact())
            return exact->holds_key(own, key, running->lines());
        return kind_of(own).holds(own, sieve_hash_key(&key, own.hash_key, own.fields),
                                  running->lines().data());
    };
    if (const ExactKind* const exact = kind_of(lookup).exact()) {
        // Keys have come and gone since the image had its witnesses.
        std::erase_if(members, [&](const sieve_witness& witness) { return !holds(witness.key); });
        if (members.empty()) {
            SIEVE_ASSIGN(const KeySet keys, exact->list(lookup, running->lines()));
            members = sample_members(keys);
        }
    }
    return JoinCandidate{
        .joinable = {.set = joint_set_of(set.name, lookup, running->file(), running->exceptions()),
                     .filter_fd = fd,
                     .members = std::move(members),
                     .holds = holds},
        .filter = std::move(filter),
        .map_id = set.map_id};
}

// The sets that can be joined, in the table's order.
Result<std::vector<JoinCandidate>> candidates_of(Kernel& kernel, const kernel::TableInForce& table,
                                                 const std::vector<std::string>& names,
                                                 const Observer& observer) {
    std::vector<JoinCandidate> candidates;
    for (const kernel::SetInForce& set : table.sets) {
        if (std::ranges::find(names, set.name) == names.end()) continue;
        SIEVE_ASSIGN(const std::string reason, cannot_be_joined(kernel, set));
        if (!reason.empty()) {
            observer.remark(fmt::format("set {} is not joined: {}", set.name, reason));
            continue;
        }
        SIEVE_ASSIGN(JoinCandidate candidate, candidate_of(kernel, set));
        candidates.push_back(std::move(candidate));
    }
    return candidates;
}

// Whether the filter has the keys that it had.
Result<bool> has_same_keys(Kernel& kernel, const JointSet& before, std::uint32_t map_id) {
    SIEVE_ASSIGN(const kernel::FilterHeader header, kernel.read_filter(map_id));
    return header.file.keys == before.keys && header.file.key_sum[0] == before.key_sum[0] &&
           header.file.key_sum[1] == before.key_sum[1];
}

Status refuse_if_changed(Kernel& kernel, const kernel::TableInForce& now,
                         const std::vector<JoinCandidate>& candidates, const std::string& interface) {
    for (const JoinCandidate& candidate : candidates) {
        const std::string& name = candidate.joinable.set.name;
        const kernel::SetInForce* const set = now.find(name);
        bool same = set != nullptr && set->map_id == candidate.map_id && set->exact_id == 0;
        if (same) {
            SIEVE_ASSIGN(same, has_same_keys(kernel, candidate.joinable.set, set->map_id));
        }
        if (!same)
            return failure(ErrorKind::changed_meanwhile,
                           fmt::format("{}: somebody else has changed set {} meanwhile", interface, name),
                           {.interface = interface, .set = name});
    }
    return {};
}

// A filter's promise holds for the exceptions that it was built with. An exact filter, whose rate is 0, needs
// none.
Status check_exceptions(const JointSet& set, const SetList& list) {
    const auto same = [](const sieve_exception& a, const sieve_exception& b) {
        return std::memcmp(&a, &b, sizeof(a)) == 0;
    };
    if (set.rate == 0 || std::ranges::equal(list.exceptions, set.exceptions, same)) return {};
    return bad_input(fmt::format("set {}: its exceptions are not those that its filter was built with: {} "
                                 "were given, and the filter has {}; swap the set first",
                                 set.name, list.exceptions.size(), set.exceptions.size()));
}

} // namespace

Result<SetList> read_set_list(const SetSpec& spec, const Observer& observer) {
    SIEVE_ASSIGN(std::vector<SetInputs> inputs, find_inputs({&spec, 1}));
    SetInputs& of_set = inputs.front();
    for (Input& source : of_set.sources) {
        SIEVE_ASSIGN(const bool image, is_image(source));
        if (image)
            return invalid_request(
                fmt::format("set {}: {} is an image, which does not list its keys; expected "
                            "the feed that it was built from",
                            spec.name, source.name()));
    }
    SIEVE_ASSIGN(Feed list, read_list(of_set.sources, spec.feed, observer));
    SetList read{.name = spec.name, .keys = KeySet(spec.feed.fields), .exceptions = {}};
    if (of_set.exceptions) {
        const std::string name = of_set.exceptions->name();
        SIEVE_ASSIGN(Feed taken, read_exceptions(*of_set.exceptions, spec.feed.fields, observer));
        SIEVE_TRY(take_out(list, taken, name, observer));
        read.exceptions = exceptions_of(std::move(taken)).lines;
    }
    if (list.has_ranges())
        return invalid_request(fmt::format(
            "set {}: its list has prefixes or ranges, and only lists of single keys can be joined",
            spec.name));
    read.keys = std::move(list.keys);
    return read;
}

Result<Rejoined> rejoin(Kernel& kernel, const HookName& name, const std::vector<std::string>& sets,
                        const BuildJoint& build, const Observer& observer, const Safety& safety) {
    SIEVE_TRY(kernel.may_load_programs());
    kernel::HookPoint point = name.point.value_or(kernel::HookPoint::xdp);
    std::vector<JoinCandidate> candidates;
    {
        SIEVE_ASSIGN(const kernel::Hook hook,
                     find_ours(kernel, name, sets.empty() ? std::string() : sets.front()));
        point = hook.point;
        SIEVE_TRY(refuse_on_probation(kernel, hook));
        for (const std::string& set : sets) SIEVE_TRY(table_with(kernel, hook, set));
        SIEVE_ASSIGN(candidates, candidates_of(kernel, kernel.read_table(hook), sets, observer));
    }
    std::vector<Joinable> joinable;
    for (const JoinCandidate& candidate : candidates) joinable.push_back(candidate.joinable);
    joinable = largest_group(std::move(joinable), observer);
    std::optional<Joined> joined;
    if (!joinable.empty()) {
        SIEVE_ASSIGN(const std::vector<LockoutQuestion> host,
                     lockout_questions(safety, name.interface, point));
        SIEVE_ASSIGN(joined,
                     make_joint(kernel, point, joinable, keys_of(host, joinable.front().set.fields), build));
    }

    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(kernel::Hook hook, find_ours(kernel, {.interface = name.interface, .point = point}));
    SIEVE_TRY(refuse_on_probation(kernel, hook));
    Rejoined done{.hook = std::move(hook)};
    if (!joined) return done;
    const kernel::TableInForce before = kernel.read_table(done.hook);
    SIEVE_TRY(refuse_if_changed(kernel, before, candidates, name.interface));
    kernel::WantedTable wanted = wanted_of(before);
    wanted.joint = joined->wanted();
    SIEVE_TRY(refuse_lockout(kernel, name.interface, point,
                             {.table = wanted, .before = &before, .joined = &*joined}, safety));
    const auto begin = std::chrono::steady_clock::now();
    SIEVE_TRY(kernel.replace_table(done.hook, wanted));
    done.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    done.joined = std::move(joined);
    return done;
}

Result<Rejoined> rejoin(Kernel& kernel, const HookName& name, const std::vector<SetList>& lists,
                        const Observer& observer, const Safety& safety) {
    std::vector<std::string> names;
    for (const SetList& list : lists) names.push_back(list.name);
    const BuildJoint build = [&](const JointTask& task) -> Result<JointFilter> {
        std::vector<const KeySet*> keys;
        for (const JointSet& set : task.sets) {
            const SetList& list = *std::ranges::find(lists, set.name, &SetList::name);
            SIEVE_TRY(check_list(set, list.keys));
            SIEVE_TRY(check_exceptions(set, list));
            keys.push_back(&list.keys);
        }
        return build_joint(task, keys, observer);
    };
    return rejoin(kernel, name, names, build, observer, safety);
}

Result<std::size_t> count_unjoined(Kernel& kernel, const kernel::TableInForce& table,
                                   const std::function<bool(const std::string& set)>& has_list) {
    std::vector<std::pair<std::uint32_t, bool>> sets; // fields, and whether the set is joined
    std::vector<std::uint32_t> all;
    for (const kernel::SetInForce& set : table.sets) {
        if (!has_list(set.name)) continue;
        SIEVE_ASSIGN(const std::string reason, cannot_be_joined(kernel, set));
        if (!reason.empty()) continue;
        SIEVE_ASSIGN(const kernel::FilterHeader header, kernel.read_filter(set.map_id));
        sets.emplace_back(header.lookup.fields, set.joined.has_value());
        all.push_back(header.lookup.fields);
    }
    const std::uint32_t fields = fields_to_join(all);
    if (std::ranges::count(all, fields) < SIEVE_JOINT_LEAST_SETS) return std::size_t{0};
    return static_cast<std::size_t>(std::ranges::count(sets, std::pair(fields, false)));
}

} // namespace sieve::control
