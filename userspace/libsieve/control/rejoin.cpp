// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/rejoin.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/end_probation.hpp"
#include "libsieve/control/hold_lock.hpp"
#include "libsieve/control/lockout.hpp"
#include "libsieve/control/source.hpp"
#include "libsieve/filters/distinct_hashes.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/header.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve::control {

namespace {

// A set of the table, with what its joint filter is built from.
struct Candidate {
    Joinable joinable{};
    UniqueFd filter{};
    std::uint32_t map_id = 0;
};

// Refuses a list that is not the filter's.
Status check_list(Kernel& kernel, const kernel::SetInForce& set, const SetList& list) {
    SIEVE_ASSIGN(const std::unique_ptr<RunningFilter> filter, kernel.open_filter(set.map_id));
    const sieve_lookup& lookup = filter->lookup();
    const auto other_list = [&](const std::string& why) {
        return bad_input(fmt::format("set {}: its list is not the one that its filter was built from: {}; "
                                     "swap the set first",
                                     set.name, why));
    };
    if (list.keys.fields() != lookup.fields) return other_list("the fields differ");
    const HugeArray<sieve_hash> hashes = distinct_hashes(list.keys, lookup.hash_key);
    if (hashes.size() != filter->file().keys)
        return other_list(fmt::format("it has {} keys, and the filter {}", hashes.size(),
                                      std::uint64_t{filter->file().keys}));
    const FilterKind& kind = kind_of(lookup);
    const auto held = std::count_if(hashes.begin(), hashes.end(), [&](const sieve_hash& hash) {
        return kind.holds(lookup, hash, filter->lines().data());
    });
    if (static_cast<std::size_t>(held) != hashes.size())
        return other_list(fmt::format("the filter does not match {} of its keys",
                                      hashes.size() - static_cast<std::size_t>(held)));
    if (list.exceptions.size() != filter->file().exceptions)
        return other_list(fmt::format("it comes with {} exceptions, and the filter with {}",
                                      list.exceptions.size(), std::uint32_t{filter->file().exceptions}));
    return {};
}

const SetList* find(const std::vector<SetList>& lists, const std::string& name) {
    const auto found = std::ranges::find(lists, name, &SetList::name);
    return found == lists.end() ? nullptr : &*found;
}

// The sets that can be joined, in the table's order.
Result<std::vector<Candidate>> candidates_of(Kernel& kernel, const kernel::TableInForce& table,
                                             const std::vector<SetList>& lists, const Observer& observer) {
    std::vector<Candidate> candidates;
    for (const kernel::SetInForce& set : table.sets) {
        const SetList* const list = find(lists, set.name);
        if (list == nullptr) continue;
        SIEVE_ASSIGN(const kernel::FilterHeader header, kernel.read_filter(set.map_id));
        if (const std::string reason = cannot_be_joined(header.lookup, set.exact_id != 0); !reason.empty()) {
            observer.remark(fmt::format("set {} is not joined: {}", set.name, reason));
            continue;
        }
        SIEVE_TRY(check_list(kernel, set, *list));
        SIEVE_ASSIGN(UniqueFd filter, kernel.open_map(set.map_id));
        const int fd = filter.get();
        candidates.push_back({.joinable = {.name = set.name,
                                           .filter_fd = fd,
                                           .keys = &list->keys,
                                           .rate = rate_from_bits(header.file.expected_fpr),
                                           .exceptions = list->exceptions},
                              .filter = std::move(filter),
                              .map_id = set.map_id});
    }
    return candidates;
}

Status refuse_if_changed(const kernel::TableInForce& now, const std::vector<Candidate>& candidates,
                         const std::string& interface) {
    for (const Candidate& candidate : candidates) {
        const std::string& name = candidate.joinable.name;
        const kernel::SetInForce* const set = now.find(name);
        if (set == nullptr || set->map_id != candidate.map_id || set->exact_id != 0)
            return failure(ErrorKind::changed_meanwhile,
                           fmt::format("{}: somebody else has changed set {} meanwhile", interface, name),
                           {.interface = interface, .set = name});
    }
    return {};
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
    if (!list.ranges.empty() || !list.key_ranges.empty())
        return invalid_request(fmt::format(
            "set {}: its list has prefixes or ranges, and only lists of single keys can be joined",
            spec.name));
    read.keys = std::move(list.keys);
    return read;
}

Result<Rejoined> rejoin(Kernel& kernel, const HookName& name, const std::vector<SetList>& lists,
                        const Observer& observer, const Safety& safety) {
    SIEVE_TRY(kernel.may_load_programs());
    kernel::HookPoint point = name.point.value_or(kernel::HookPoint::xdp);
    std::vector<Candidate> candidates;
    {
        SIEVE_ASSIGN(const kernel::Hook hook,
                     find_ours(kernel, name, lists.empty() ? std::string() : lists.front().name));
        point = hook.point;
        SIEVE_TRY(refuse_on_probation(kernel, hook));
        for (const SetList& list : lists) SIEVE_TRY(table_with(kernel, hook, list.name));
        SIEVE_ASSIGN(candidates, candidates_of(kernel, kernel.read_table(hook), lists, observer));
    }
    std::vector<Joinable> joinable;
    for (const Candidate& candidate : candidates) joinable.push_back(candidate.joinable);
    joinable = largest_group(std::move(joinable), observer);
    std::optional<Joined> joined;
    if (!joinable.empty()) {
        SIEVE_ASSIGN(const std::vector<Question> host, lockout_questions(safety, name.interface, point));
        const std::vector<sieve_key> spared = keys_of(host, joinable.front().keys->fields());
        SIEVE_ASSIGN(joined, make_joint(kernel, point, joinable, spared, observer));
    }

    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(kernel::Hook hook, find_ours(kernel, {.interface = name.interface, .point = point}));
    SIEVE_TRY(refuse_on_probation(kernel, hook));
    Rejoined done{.hook = std::move(hook)};
    if (!joined) return done;
    const kernel::TableInForce before = kernel.read_table(done.hook);
    SIEVE_TRY(refuse_if_changed(before, candidates, name.interface));
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

Result<std::size_t> count_unjoined(Kernel& kernel, const kernel::TableInForce& table,
                                   const std::function<bool(const std::string& set)>& has_list) {
    std::vector<std::pair<std::uint32_t, bool>> sets; // fields, and whether the set is joined
    std::vector<std::uint32_t> all;
    for (const kernel::SetInForce& set : table.sets) {
        if (!has_list(set.name)) continue;
        SIEVE_ASSIGN(const kernel::FilterHeader header, kernel.read_filter(set.map_id));
        if (!cannot_be_joined(header.lookup, set.exact_id != 0).empty()) continue;
        sets.emplace_back(header.lookup.fields, set.joined.has_value());
        all.push_back(header.lookup.fields);
    }
    const std::uint32_t fields = fields_to_join(all);
    if (std::ranges::count(all, fields) < SIEVE_JOINT_LEAST_SETS) return std::size_t{0};
    return static_cast<std::size_t>(std::ranges::count(sets, std::pair(fields, false)));
}

} // namespace sieve::control
