// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/range_set.hpp"

#include <filesystem>
#include <utility>

#include "libsieve/keys/address_key.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/util/digest.hpp"

namespace sieve::service::live {

RangeSet RangeSet::open(LiveSetOptions options, const StateDirectory& state,
                        const control::Observer& observer) {
    RangeSet ranges(std::move(options.set), std::move(options.protection), state);
    const std::optional<SetRecord> record = state.read(ranges.name(), observer.remark);
    ranges.due_ = !record || record->build != digest_of(build_text(ranges.set_));
    Status known;
    // Where the image is damaged or gone, its list may be whole.
    const std::optional<SetRecord> named = record ? record : state.named(ranges.name());
    if (named) known = read_timed_list(state.list_path(ranges.name(), named->identity), ranges.list_);
    if (!named && options.in_force) known = bad_input(no_list_kept);
    if (known) return ranges;
    observer.remark(lost_list_text(ranges.name(), known.error().message));
    ranges.lost_ = ranges.list_.prefixes();
    ranges.list_ = TimedList();
    return ranges;
}

void RangeSet::check_files(const control::Observer& observer) {
    if (due_) return;
    const std::optional<SetRecord> record = state_->read(name(), observer.remark);
    due_ = !record || !std::filesystem::exists(state_->list_path(name(), record->identity));
}

// A stream says of each decision that it ends, and may end up with no prefix at all. A list that is short may
// have been cut short.
std::optional<Refusal> RangeSet::guard(const TimedList& list, bool whole_list) const {
    const auto feed_of = [&](const TimedList& timed_entries) {
        Feed feed(set_.feed.fields);
        timed_entries.for_each_prefix([&](const Prefix& prefix) { feed.ranges.push_back(prefix.range()); });
        return feed;
    };
    const Feed feed = feed_of(list);
    // Of a list that was lost, only the number of its prefixes is known.
    const ListSize before = lost_ ? ListSize{.entries = *lost_} : size_of(set_, feed_of(list_));
    if (before.entries > 0) {
        std::optional<Refusal> refusal = check_size(set_, size_of(set_, feed), before);
        if (refusal && (whole_list || refusal->guard != Guard::shrink))
            return unless_accepted(std::move(*refusal), set_, list, before, *state_);
    }
    if (list.prefixes() == 0) return std::nullopt;
    // The host's addresses were kept out one by one.
    std::optional<Refusal> refusal = check_list(set_, feed, std::nullopt, Protection{});
    if (!refusal) return std::nullopt;
    return unless_accepted(std::move(*refusal), set_, list, before, *state_);
}

RangeSet::Change RangeSet::change(const EntryChange& change) {
    return take(change, false);
}

RangeSet::Change RangeSet::take(const EntryChange& change, bool whole_list) {
    Change report;
    std::vector<TimedEntry> added = change.added;
    report.kept_out = keep_out(added, set_, protection_);
    TimedList after = list_;
    for (const TimedEntry& timed_entry : change.removed)
        if (after.remove(timed_entry.prefix, timed_entry.id)) report.removed++;
    for (const TimedEntry& timed_entry : added)
        if (after.add(timed_entry)) report.added++;
    if (report.added > 0 || whole_list) report.refusal = guard(after, whole_list);
    if (report.refusal) {
        report.added = report.removed = 0;
        return report;
    }
    list_ = std::move(after);
    if (whole_list) state_->forget_refused(name());
    due_ = due_ || report.added + report.removed > 0;
    return report;
}

RangeSet::Change RangeSet::replace(std::vector<TimedEntry> all) {
    EntryChange whole;
    TimedList wanted;
    for (const TimedEntry& timed_entry : all) wanted.add(timed_entry);
    list_.for_each([&](const TimedEntry& timed_entry) {
        if (!wanted.find(timed_entry.prefix, timed_entry.id)) whole.removed.push_back(timed_entry);
    });
    whole.added = std::move(all);
    Change report = take(whole, true);
    if (!report.refusal && std::exchange(lost_, std::nullopt)) due_ = true;
    return report;
}

RangeSet::Change RangeSet::expire(Time now) {
    Change report;
    for (const TimedEntry& timed_entry : list_.expired(now))
        if (list_.remove(timed_entry.prefix, timed_entry.id)) report.removed++;
    due_ = due_ || report.removed > 0;
    return report;
}

RangeSet::Change RangeSet::remove_protected() {
    Change report;
    KeptOut kept_out = kept_out_of(list_, set_, protection_);
    for (const TimedEntry& timed_entry : kept_out.timed_entries)
        if (list_.remove(timed_entry.prefix, timed_entry.id)) report.removed++;
    report.kept_out = std::move(kept_out.texts);
    due_ = due_ || report.removed > 0;
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

Status RangeSet::publish(control::Kernel& kernel, Image image, const control::Observer& observer) {
    SIEVE_TRY(write_next_list(list_, *state_, name()));
    const auto nothing_more = [](const std::string&) -> Status { return {}; };
    SIEVE_ASSIGN(PublishedImage published, publish_image(kernel, *state_, set_, image, list_.timed_entries(),
                                                         {}, nothing_more, observer));
    SIEVE_TRY(published.everywhere);
    due_ = false;
    return {};
}

} // namespace sieve::service::live
