// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/range_set.hpp"

#include <filesystem>
#include <utility>

#include "libsieve/keys/address_key.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/util/files/digest.hpp"

namespace sieve::service::live {

RangeSet RangeSet::open(LiveSetOptions options, const std::set<Part>& parts, control::Kernel& kernel,
                        const StateDirectory& state, control::Observer observer) {
    const bool in_force = options.in_force;
    RangeSet ranges(std::move(options), parts, kernel, state, std::move(observer));
    const std::optional<SetRecord> record = state.read(ranges.name(), ranges.observer_.remark);
    // A cycle brings what waits for its action.
    ranges.due_ = !record || record->build != digest_of(build_text(ranges.set_)) ||
                  (record->action != action_to_come &&
                   !is_in_force_everywhere(kernel, ranges.name(), record->identity));
    Status known;
    // Where the image is damaged or gone, its list may be whole.
    const std::optional<SetRecord> named = record ? record : state.named(ranges.name());
    if (named) known = read_timed_list(state.list_path(ranges.name(), named->identity), ranges.list_);
    if (!named && in_force) known = bad_input(no_list_kept);
    if (known) return ranges;
    ranges.observer_.remark(lost_list_text(ranges.name(), known.error().message));
    ranges.lost_ = ranges.list_.prefixes();
    ranges.list_ = TimedList();
    return ranges;
}

void RangeSet::check_files() {
    if (due_) return;
    const std::optional<SetRecord> record = state_->read(name(), observer_.remark);
    due_ = !record || !std::filesystem::exists(state_->list_path(name(), record->identity));
}

static Feed feed_of(const TimedList& list, std::uint32_t fields) {
    Feed feed(fields);
    list.for_each_prefix([&](const Prefix& prefix) { feed.ranges.push_back(prefix.range()); });
    return feed;
}

// A stream says of each decision that it ends, and may end up with no prefix at all. A list that is short may
// have been cut short. Who gave bans was asked (take_bans.hpp).
std::optional<Refusal> RangeSet::guard_size(const TimedList& list, Part part, bool whole_list) const {
    if (part == Part::bans) return std::nullopt;
    const auto size_of_part = [&](const TimedList& of) {
        return size_of(set_, feed_of(part_alone(of, part), set_.feed.fields));
    };
    ListSize before = size_of_part(list_);
    ListSize after = size_of_part(list);
    if (lost_) { // only the number of all its prefixes is known
        before = {.entries = *lost_};
        after = {.entries = list.prefixes()};
    }
    if (before.entries == 0) return std::nullopt;
    std::optional<Refusal> refusal = check_size(set_, after, before);
    const bool may_be_short = lost_ ? !said_.all_with(part) : part == Part::followed && !whole_list;
    if (!refusal || (refusal->guard == Guard::shrink && may_be_short)) return std::nullopt;
    return unless_accepted(std::move(*refusal), set_, part_alone(list, part), before, *state_);
}

std::optional<Refusal> RangeSet::guard(const TimedList& list, Part part, bool whole_list) const {
    if (auto refusal = guard_size(list, part, whole_list)) return refusal;
    if (list.prefixes() == 0) return std::nullopt;
    // The host's addresses were kept out one by one.
    std::optional<Refusal> refusal =
        check_list(set_, feed_of(list, set_.feed.fields), std::nullopt, Protection{});
    if (!refusal) return std::nullopt;
    const ListSize before =
        lost_ ? ListSize{.entries = *lost_} : size_of(set_, feed_of(list_, set_.feed.fields));
    return unless_accepted(std::move(*refusal), set_, list, before, *state_);
}

Result<RangeSet::Change> RangeSet::change(Part part, const EntryChange& change) {
    return take(part, change, false);
}

// The addresses of these ranges that no prefix of the list holds.
static Result<Members> outside(std::vector<AddressRange> ranges, const TimedList& list,
                               std::uint32_t fields) {
    const KeySet no_keys(fields);
    Members members(no_keys, std::move(ranges));
    SIEVE_TRY(subtract(members, Members(no_keys, feed_of(list, fields).ranges)));
    return members;
}

// What has left the list may be in force until now, for a change on probation keeps a new image out. A single
// address that went meanwhile may have relied on it.
Status RangeSet::ask_again() const {
    if (!refuse_removal_ || left_.empty()) return {};
    return refuse_removal_([&] { return outside(left_, list_, set_.feed.fields); });
}

TimedList RangeSet::list_after(const EntryChange& change, Change& report) const {
    std::vector<TimedEntry> added = change.added;
    report.kept_out = keep_out(added, set_, protection_);
    TimedList after = list_;
    for (const TimedEntry& timed_entry : change.removed)
        if (after.remove(timed_entry.prefix, timed_entry.id)) report.removed++;
    for (const TimedEntry& timed_entry : added)
        if (after.add(timed_entry)) report.added++;
    return after;
}

Result<RangeSet::Change> RangeSet::take(Part part, const EntryChange& change, bool whole_list) {
    Change report;
    TimedList after = list_after(change, report);
    if (report.added > 0 || whole_list) report.refusal = guard(after, part, whole_list);
    if (!report.refusal && report.removed > 0) {
        SIEVE_ASSIGN(report.refusal, guard_removal(refuse_removal_, name(), [&] {
                         const std::uint32_t fields = set_.feed.fields;
                         return outside(feed_of(list_, fields).ranges, after, fields);
                     }));
    }
    if (report.refusal) {
        said_.refuse(part);
        report.added = report.removed = 0;
        return report;
    }
    list_ = std::move(after);
    if (report.removed > 0)
        for (const TimedEntry& timed_entry : change.removed) left_.push_back(timed_entry.prefix.range());
    if (whole_list && said_.take(part)) state_->forget_refused(name());
    due_ = due_ || report.added + report.removed > 0;
    return report;
}

std::optional<Refusal> RangeSet::refuses_all(Part part, const std::vector<TimedEntry>& all) {
    Change report;
    const TimedList after = list_after(said_.replacement(list_, part, all), report);
    std::optional<Refusal> refusal =
        part == Part::lists ? guard(after, part, true) : guard_size(after, part, true);
    if (refusal) said_.refuse(part);
    return refusal;
}

Result<RangeSet::Change> RangeSet::replace(Part part, const std::vector<TimedEntry>& all) {
    SIEVE_ASSIGN(Change report, take(part, said_.replacement(list_, part, all), true));
    if (report.refusal) return report;
    said_.say(part);
    if (said_.all() && std::exchange(lost_, std::nullopt)) due_ = true;
    return report;
}

RangeSet::Change RangeSet::remove(const std::vector<TimedEntry>& gone) {
    Change report;
    for (const TimedEntry& timed_entry : gone)
        if (list_.remove(timed_entry.prefix, timed_entry.id)) report.removed++;
    due_ = due_ || report.removed > 0;
    return report;
}

RangeSet::Change RangeSet::expire(Time now) {
    return remove(list_.expired(now));
}

RangeSet::Change RangeSet::remove_protected() {
    KeptOut kept_out = kept_out_of(list_, set_, protection_);
    Change report = remove(kept_out.timed_entries);
    report.kept_out = std::move(kept_out.texts);
    return report;
}

Result<Image> RangeSet::build(const SandboxSettings& sandbox) const {
    Feed feed(set_.feed.fields);
    list_.for_each_prefix([&](const Prefix& prefix) {
        if (prefix.is_single())
            feed.keys.add(key_of_address(prefix.address, set_.feed.fields));
        else
            feed.ranges.push_back(prefix.range());
    });
    if (feed.entries() == 0) feed.keys.add(key_of_address(placeholder.address, set_.feed.fields));
    SIEVE_ASSIGN(const ReadList list, own_list(std::move(feed), name()));
    SIEVE_ASSIGN(BuiltList built,
                 build_in_sandbox({.set = name(), .feed = set_.feed, .sandbox = sandbox}, list));
    return std::move(built.image);
}

Status RangeSet::publish(Image image, PutInForce put_in_force) {
    if (put_in_force == PutInForce::here) SIEVE_TRY(ask_again());
    SIEVE_TRY(write_next_list(list_, *state_, name()));
    const auto nothing_more = [](const std::string&) -> Status { return {}; };
    SIEVE_ASSIGN(PublishedImage published,
                 publish_image(*kernel_, *state_, set_, image, list_.timed_entries(), {}, put_in_force,
                               nothing_more, observer_));
    SIEVE_TRY(published.everywhere);
    if (put_in_force == PutInForce::here) left_.clear();
    due_ = false;
    return {};
}

} // namespace sieve::service::live
