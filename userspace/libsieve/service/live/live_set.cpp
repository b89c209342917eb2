// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/live_set.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/address_key.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/safety/acceptance.hpp"
#include "libsieve/service/sources/origin.hpp"
#include "libsieve/util/files/digest.hpp"
#include "libsieve/util/text/counted.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service::live {

namespace {

// A table is built with room for a quarter more keys, and for this many besides: a burst of some thousand
// bans does not wait for a rebuild.
constexpr std::uint64_t least_room = 8192;

constexpr std::uint64_t longest_journal = std::uint64_t{64} << 20;

std::uint64_t room_beside(const TimedList& list) {
    return least_room + list.prefixes() / 4;
}

// Repeated decisions may shift an expiry by up to this much.
constexpr std::chrono::seconds same_end{2};

std::string journal_path(const StateDirectory& state, const std::string& set, const std::string& identity) {
    std::string path = state.list_path(set, identity);
    path.resize(path.size() - std::string_view("list").size());
    return path + "journal";
}

// An error if the set cannot be kept so: it is verified, or its size or key is a wrong one.
Status check_live(const SetConfiguration& set) {
    const auto fault = [&](const std::string& what) {
        return invalid_request(fmt::format("set {}: its keys change in place, {}", set.name, what));
    };
    if (!entry::is_single_address(set.feed.fields))
        return fault(fmt::format("and its key is {}, expected src or dst", format_fields(set.feed.fields)));
    if (set.verify) return fault("so it cannot be verified; expected verify = false");
    if (set.feed.build.fpr || set.feed.build.memory)
        return fault("so its size follows its list; expected neither fpr nor memory");
    return {};
}

} // namespace

bool is_urgent(RebuildReason reason) {
    return reason < RebuildReason::little_room;
}

Result<Image> build_live_image(RebuildOrder order, const SandboxSettings& sandbox) {
    const BuildRequest request{.set = order.set, .feed = order.feed, .sandbox = sandbox};
    Feed keys(order.feed.fields);
    keys.keys = std::move(order.keys);
    SIEVE_ASSIGN(const ReadList list, own_list(std::move(keys), order.set));
    SIEVE_ASSIGN(BuiltList built, build_in_sandbox(request, list));
    return std::move(built.image);
}

// --- opening

Result<LiveSet> LiveSet::open(LiveSetOptions options, control::Kernel& kernel, const StateDirectory& state,
                              control::Observer observer) {
    SIEVE_TRY(check_live(options.set));
    LiveSet set(std::move(options), kernel, state, std::move(observer));
    SIEVE_TRY(set.load());
    return set;
}

Status LiveSet::load() {
    const std::optional<SetRecord> record = state_->read(name(), observer_.remark);
    // Where the image is damaged or gone, its list with the journal may be whole: they are all that is known.
    const std::optional<SetRecord> named = record ? record : state_->named(name());
    Status known = named ? Status() : bad_input(no_list_kept);
    if (named) {
        base_ = named->identity;
        known = named->list_digest.empty() ? read_timed_list(state_->list_path(name(), base_), list_)
                                           : bad_input("its list has not changed in place so far");
        if (known && record) room_for_ = list_.prefixes() + room_beside(list_);
        if (known) known = load_journal();
    }
    if (!record) {
        base_.clear();
        journal_.reset();
        due(RebuildReason::no_image);
        if (known) return {};
        list_ = TimedList();
        if (options_.in_force) lose_list(no_list_kept, 0);
        return {};
    }
    sources_ = record->sources;
    if (record->build != digest_of(build_text(options_.set))) due(RebuildReason::options);
    // What could be read of it may be little, and it may be that of a set that did not change in place
    // before.
    if (!known)
        lose_list(known.error().message, std::min(record->entries, record->keys));
    else if (list_.prefixes() > room_for_)
        due(RebuildReason::no_room);
    return {};
}

// The files stay as they are, so that another process that begins here knows no more.
void LiveSet::lose_list(const std::string& why, std::uint64_t prefixes) {
    observer_.remark(lost_list_text(name(), why));
    lost_ = std::max<std::uint64_t>(prefixes, list_.prefixes());
    list_ = TimedList();
    due(RebuildReason::unknown);
}

Status LiveSet::load_journal() {
    Journal::Content content;
    SIEVE_ASSIGN(Journal journal, Journal::open(journal_path(*state_, name(), base_), content));
    if (content.torn)
        observer_.remark(
            fmt::format("set {}: the last change in its journal was cut short and is left out", name()));
    LiveChange ignored;
    for (const EntryChange& change : content.changes) enter(change, ignored);
    pending_.clear();
    journal_ = std::move(journal);
    return {};
}

// --- the list

void LiveSet::note(Difference& difference, const Prefix& prefix, bool on) {
    const auto [at, is_new] = difference.emplace(prefix, on);
    if (!is_new && at->second != on) difference.erase(at); // there and back
}

Status LiveSet::append_to_journal(const EntryChange& change) {
    if (!journal_) return {};
    Status noted = journal_->append(change);
    if (!noted) due(RebuildReason::unsaved);
    return noted;
}

// What cannot be written does not come into force: after a crash, nobody would know of it. A new image goes
// where it can be written, with a journal of its own.
Status LiveSet::write_down(EntryChange change, LiveChange& report) {
    if (waiting_)
        waiting_->push_back(change);
    else
        SIEVE_TRY(append_to_journal(change));
    enter(change, report);
    if (rebuilding_) rebuilding_->since.push_back(std::move(change));
    return {};
}

void LiveSet::check_files() {
    if (base_.empty() || lost_ || due_ == RebuildReason::no_image) return;
    const std::optional<SetRecord> record = state_->read(name(), observer_.remark);
    const bool is_whole = record && record->identity == base_ &&
                          std::filesystem::exists(state_->list_path(name(), base_)) &&
                          (!journal_ || std::filesystem::exists(journal_->path()));
    if (!is_whole) due(RebuildReason::no_image);
}

void LiveSet::enter(const EntryChange& change, LiveChange& report) {
    const std::lock_guard lock(*mutex_);
    const auto note_everywhere = [&](const Prefix& prefix, bool on) {
        (on ? report.added : report.removed)++;
        note(pending_, prefix, on);
        if (rebuilding_) note(rebuilding_->difference, prefix, on);
    };
    for (const TimedEntry& timed_entry : change.removed)
        if (list_.remove(timed_entry.prefix, timed_entry.id)) note_everywhere(timed_entry.prefix, false);
    for (const TimedEntry& timed_entry : change.added)
        if (list_.add(timed_entry)) note_everywhere(timed_entry.prefix, true);
}

bool LiveSet::is_banned(const Prefix& single) const {
    const std::lock_guard lock(*mutex_);
    return list_.find(single, entry_id(0, ban_origin)).has_value();
}

void LiveSet::nothing_is_refused(Part part) {
    if (said_.take(part)) state_->forget_refused(name());
}

void LiveSet::drop_what_changes_nothing(EntryChange& change) const {
    // A timed entry that goes and comes at once stays, with its new end.
    TimedList coming;
    for (const TimedEntry& timed_entry : change.added) coming.add(timed_entry);
    std::erase_if(change.removed, [&](const TimedEntry& timed_entry) {
        return coming.find(timed_entry.prefix, timed_entry.id) ||
               !list_.find(timed_entry.prefix, timed_entry.id);
    });
    std::erase_if(change.added, [&](const TimedEntry& timed_entry) {
        const std::optional<TimedEntry> now = list_.find(timed_entry.prefix, timed_entry.id);
        if (!now) return false;
        if (now->until == never || timed_entry.until == never || part_of(timed_entry.id) == Part::bans)
            return now->until == timed_entry.until;
        const auto apart = now->until - timed_entry.until;
        return apart < same_end && -apart < same_end;
    });
}

std::optional<Refusal> LiveSet::guard(Part part, const EntryChange& change, bool whole_list) const {
    if (part == Part::bans) return std::nullopt; // who gave them was asked (take_bans.hpp)
    // The number of the part's timed entries of each prefix that come, less those that go.
    std::unordered_map<Prefix, std::int64_t, PrefixHash> balance;
    for (const TimedEntry& timed_entry : change.removed)
        if (part_of(timed_entry.id) == part) balance[timed_entry.prefix]--;
    for (const TimedEntry& timed_entry : change.added)
        if (!list_.find(timed_entry.prefix, timed_entry.id)) balance[timed_entry.prefix]++;
    ListSize before{.entries = prefixes_in(list_, part)};
    std::uint64_t after = before.entries;
    for (const auto& [prefix, difference] : balance) {
        const auto now = static_cast<std::int64_t>(list_.count(prefix, part));
        if (now == 0 && difference > 0) after++;
        if (now > 0 && now + difference <= 0) after--;
    }
    const bool follows = part == Part::followed && followed_stream(options_.set) != nullptr;
    if (after == 0 && part == Part::followed && !follows && !options_.set.empty)
        return unless_accepted(empty_list(options_.set), part, change, before);
    // Of a list that was lost, only the number of all its prefixes is known.
    if (awaits_sources()) {
        after += list_.prefixes() - std::min<std::uint64_t>(list_.prefixes(), before.entries);
        before.entries = *lost_;
    }
    if (base_.empty() || before.entries == 0) return std::nullopt; // there is nothing to compare with
    std::optional<Refusal> refusal = check_size(options_.set, {.entries = after}, before);
    if (refusal && refusal->guard == Guard::shrink) {
        // A stream says of each decision that it ends. A list that is short may have been cut short.
        if (follows && !whole_list) return std::nullopt;
        // Others are still to come.
        if (awaits_sources() && !said_.all_with(part)) return std::nullopt;
    }
    return refusal ? unless_accepted(std::move(*refusal), part, change, before) : std::nullopt;
}

// What is on the list, and is not once it has the change.
Members LiveSet::leaving(const EntryChange& change) const {
    std::unordered_map<Prefix, std::uint64_t, PrefixHash> removed;
    for (const TimedEntry& timed_entry : change.removed) removed[timed_entry.prefix]++;
    for (const TimedEntry& timed_entry : change.added) removed.erase(timed_entry.prefix);
    Members members(fields());
    for (const auto& [prefix, count] : removed)
        if (count >= list_.count(prefix)) members.keys.add(key_of_address(prefix.address, fields()));
    return members;
}

// Nothing if a person has accepted the part that the change leads to.
std::optional<Refusal> LiveSet::unless_accepted(Refusal refusal, Part part, const EntryChange& change,
                                                const ListSize& before) const {
    TimedList after = part_alone(list_, part);
    for (const TimedEntry& timed_entry : change.removed) after.remove(timed_entry.prefix, timed_entry.id);
    for (const TimedEntry& timed_entry : change.added) after.add(timed_entry);
    return live::unless_accepted(std::move(refusal), options_.set, after, before, *state_);
}

Result<LiveChange> LiveSet::take(Part part, EntryChange change, bool whole_list) {
    LiveChange report;
    if (const auto range =
            std::find_if(change.added.begin(), change.added.end(),
                         [](const TimedEntry& timed_entry) { return !timed_entry.prefix.is_single(); });
        range != change.added.end())
        return bad_input(fmt::format("set {}: {} is a prefix, and only single addresses change in place",
                                     name(), prefix_text(range->prefix)));
    report.kept_out = keep_out(change.added, options_.set, options_.protection);
    for (const TimedEntry& timed_entry : change.added) held_.remove(timed_entry.prefix, timed_entry.id);
    drop_what_changes_nothing(change);
    const bool is_found = whole_list && awaits_sources() && !said_.has(part);
    const bool is_same = change.empty() && !is_found;
    if (!is_same) {
        report.refusal = guard(part, change, whole_list);
        const std::vector<TimedEntry> held = take_held_out(change);
        if (!report.refusal && !change.removed.empty()) {
            SIEVE_ASSIGN(report.refusal, guard_removal(options_.refuse_removal, name(),
                                                       [&]() -> Result<Members> { return leaving(change); }));
        }
        if (report.refusal) {
            said_.refuse(part);
            return report;
        }
        if (whole_list && comes_with_action(part)) wait_for_cycle();
        if (!change.empty()) SIEVE_TRY(write_down(std::move(change), report));
        for (const TimedEntry& timed_entry : held) held_.add(timed_entry);
    }
    if (whole_list || !is_same) nothing_is_refused(part);
    if (whole_list) {
        said_.say(part);
        sources_said_ = said_.all();
    }
    put_in_force(report);
    return report;
}

Result<LiveChange> LiveSet::change(Part part, EntryChange change) {
    return take(part, std::move(change), false);
}

Result<LiveChange> LiveSet::replace(Part part, std::vector<TimedEntry> all) {
    EntryChange change = said_.replacement(list_, part, all);
    all = {};
    return take(part, std::move(change), true);
}

// What no guard has a say in.
Result<LiveChange> LiveSet::remove(EntryChange change) {
    LiveChange report;
    if (change.removed.empty()) return report;
    SIEVE_TRY(write_down(std::move(change), report));
    put_in_force(report);
    return report;
}

void LiveSet::hold(std::vector<AddressRange> ranges) {
    held_ranges_.insert(held_ranges_.end(), ranges.begin(), ranges.end());
    held_ranges_ = merge_ranges(std::move(held_ranges_));
}

std::vector<TimedEntry> LiveSet::take_held_out(EntryChange& change) const {
    std::vector<TimedEntry> held;
    std::erase_if(change.removed, [&](const TimedEntry& timed_entry) {
        const bool is_held = holds_address(held_ranges_, timed_entry.prefix.address);
        if (is_held) held.push_back(timed_entry);
        return is_held;
    });
    return held;
}

Result<LiveChange> LiveSet::release() {
    EntryChange change;
    held_.for_each([&](const TimedEntry& timed_entry) { change.removed.push_back(timed_entry); });
    if (options_.refuse_removal && !change.empty())
        SIEVE_TRY(options_.refuse_removal([&]() -> Result<Members> { return leaving(change); }));
    SIEVE_ASSIGN(LiveChange done, remove(std::move(change)));
    held_ranges_.clear();
    held_ = TimedList();
    return done;
}

Result<LiveChange> LiveSet::expire(Time now) {
    const std::vector<TimedEntry> ended = list_.expired(now);
    EntryChange change{ended, {}};
    const std::vector<TimedEntry> held = take_held_out(change);
    auto done = remove(std::move(change));
    if (done) {
        for (const TimedEntry& timed_entry : held) held_.add(timed_entry);
    } else {
        const std::lock_guard lock(*mutex_);
        for (const TimedEntry& timed_entry : ended) list_.add(timed_entry); // their ends were taken out
    }
    return done;
}

Result<LiveChange> LiveSet::remove_protected() {
    KeptOut kept_out = kept_out_of(list_, options_.set, options_.protection);
    auto done = remove({std::move(kept_out.timed_entries), {}});
    if (done) done->kept_out = std::move(kept_out.texts);
    return done;
}

// --- the filters in force

LiveChange LiveSet::reconcile() {
    LiveChange report;
    put_in_force(report);
    return report;
}

void LiveSet::due(RebuildReason reason) {
    if (!due_ || reason < *due_) due_ = reason;
}

control::KeyDifference LiveSet::keys_of(const Difference& difference) const {
    control::KeyDifference keys(fields());
    for (const auto& [prefix, on] : difference)
        (on ? keys.added : keys.removed).add(key_of_address(prefix.address, fields()));
    return keys;
}

bool LiveSet::is_changeable(const control::LiveFilter& filter) const {
    return filter.changeable && filter.fields == fields();
}

bool LiveSet::has_noted(const control::LiveFilter& filter) const {
    return std::ranges::find(noted_, NotedFilter{filter.map_id, filter.changes}) != noted_.end();
}

control::WantedKeys LiveSet::all_keys() const {
    const auto visit_all = [this](const std::function<void(const sieve_key&)>& visit) {
        list_.for_each_prefix([&](const Prefix& prefix) { visit(key_of_address(prefix.address, fields())); });
    };
    return {
        .contains = [this](const sieve_key& key) { return list_.contains({address_of_key(key, fields())}); },
        .for_each = visit_all};
}

void LiveSet::catch_up(std::uint32_t map_id) {
    const std::lock_guard lock(*mutex_);
    if (base_.empty() || lost_) return;
    const control::WantedKeys all = all_keys();
    const auto changed = control::change_coming_filter(
        *kernel_, name(), map_id, [&](const control::LiveFilter& filter) -> control::FilterDue {
            return {.list = is_changeable(filter) ? &all : nullptr};
        });
    if (changed && changed->touched && changed->no_room == 0)
        noted_.push_back({map_id, changed->filter.changes});
}

void LiveSet::rebuild_for(const control::LiveFilter& filter, RebuildReason reason, LiveChange& report) {
    if (filter.in_force)
        due(reason);
    else
        report.comes_back_behind = true; // no new filter can take its place before it is back
}

void LiveSet::put_in_force(LiveChange& report) {
    report.looked = true;
    const auto begin = std::chrono::steady_clock::now();
    if (!base_.empty() && !lost_ && !waiting_) {
        auto held = control::LiveFilters::hold(*kernel_, name(), observer_);
        const std::lock_guard lock(*mutex_);
        const control::KeyDifference latest = keys_of(pending_);
        const control::WantedKeys all = all_keys();
        const auto due_for = [&](const control::LiveFilter& filter) -> control::FilterDue {
            if (!is_changeable(filter)) {
                rebuild_for(filter, RebuildReason::unknown, report);
                return {};
            }
            if (has_noted(filter)) return {.difference = &latest};
            return {.list = &all};
        };
        auto filters = held ? held->change(due_for) : tl::unexpected(std::move(held.error()));
        // No table in force says it, and one that comes gets the whole list.
        if (filters && filters->empty() && list_.prefixes() > room_for_) due(RebuildReason::no_room);
        if (filters) {
            noted_.clear(); // a filter that came and is not in force never was
            pending_.clear();
            for (const control::FilterChanged& filter : *filters) {
                if (!filter.touched) continue;
                report.keys += filter.done;
                if (filter.no_room > 0) {
                    rebuild_for(filter.filter, RebuildReason::no_room, report);
                    continue;
                }
                if (filter.little_room) due(RebuildReason::little_room);
                if (filter.filter.in_force) report.filters++;
                noted_.push_back({filter.filter.map_id, filter.filter.changes});
            }
            if (journal_ && journal_->bytes() > longest_journal) due(RebuildReason::long_journal);
        } else {
            if (filters.error().kind == ErrorKind::unfinished) noted_.clear();
            report.delayed = std::move(filters.error());
        }
    }
    report.taken =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
    report.rebuild_due = due_;
}

// The sources that the list is of now.
std::vector<SourceProvenance> LiveSet::sources_now() const {
    if (!sources_said_) return sources_;
    const SourceIdentities now = source_identities(options_.set.sources);
    std::set<std::string> all = now.known;
    for (const SourceProvenance& source : sources_) // of a folder that went
        if (now.may_have(source.source)) all.insert(source.source);
    std::vector<SourceProvenance> sources;
    for (const std::string& source : all) sources.push_back({.source = source});
    return sources;
}

bool LiveSet::is_of_new_sources() {
    sources_said_ = sources_said_ && identities_of(sources_now()) != identities_of(sources_);
    return sources_said_;
}

bool LiveSet::note_sources() {
    std::optional<SetRecord> record = state_->named(name());
    if (!record || record->identity != base_) return false;
    record->sources = sources_now();
    if (!state_->commit(name(), *record)) return false;
    sources_ = std::move(record->sources);
    return true;
}

// --- waiting for a cycle

bool LiveSet::has_other_action() const {
    const std::optional<SetRecord> record = state_->named(name());
    return record && !record->action.empty() && !options_.action.empty() && record->action != options_.action;
}

// After a crash, the sources say again what no journal has, and what is in force is the list before.
void LiveSet::wait_for_cycle() {
    if (!waiting_) waiting_.emplace();
}

Result<LiveChange> LiveSet::stop_waiting() {
    for (const EntryChange& change : *waiting_) SIEVE_TRY(append_to_journal(change));
    waiting_.reset();
    if (due_ == RebuildReason::other_action) due_.reset();
    return reconcile();
}

// --- rebuilding

Result<RebuildOrder> LiveSet::begin_rebuild() {
    SIEVE_TRY(write_next_list(list_, *state_, name()));
    RebuildOrder order{.set = name(), .feed = options_.set.feed, .keys = KeySet(fields())};
    order.keys.reserve(list_.prefixes());
    list_.for_each_prefix(
        [&](const Prefix& prefix) { order.keys.add(key_of_address(prefix.address, fields())); });
    if (order.keys.empty()) // they go when the table comes into force
        for (const Prefix& nobody : {placeholder, ipv4_placeholder})
            order.keys.add(key_of_address(nobody.address, fields()));
    BuildOptions& build = order.feed.build;
    build.kind = {.kind = SIEVE_KIND_EXACT};
    build.bits_per_key.reset();
    build.spare.room = room_beside(list_);
    rebuilding_ = Rebuilding{.since = {},
                             .difference = {},
                             .timed_entries = list_.timed_entries(),
                             .room_for = list_.prefixes() + build.spare.room};
    return order;
}

Status LiveSet::add_latest(Image& image) {
    KeySet added(fields());
    EntryChange gone; // stays in the image, and is removed from the filters
    for (const auto& [prefix, on] : rebuilding_->difference) {
        if (on) {
            added.add(key_of_address(prefix.address, fields()));
        } else {
            gone.removed.push_back({prefix, 0, never});
        }
    }
    if (added.empty()) return {};
    SIEVE_ASSIGN(const std::unique_ptr<ChangeableTable> table,
                 kind_of(image.lookup()).exact()->open_table(image.lookup(), image.file(), image.filter()));
    SIEVE_ASSIGN(const TableChangeResult done,
                 table->change(
                     KeySet(fields()), added, [] { return Status(); }, never_ends));
    if (!done.full.empty())
        return bad_input(fmt::format("set {}: its image has no room for {} that came while it was built",
                                     name(), counted(done.full.size(), "key")));
    // It is the image of this list.
    image.file().entries += done.added;
    image.file().changes = 0;
    TimedList list = list_;
    for (const TimedEntry& timed_entry : gone.removed) list.add(timed_entry);
    SIEVE_TRY(write_next_list(list, *state_, name()));
    rebuilding_ = Rebuilding{.since = {},
                             .difference = {},
                             .timed_entries = list.timed_entries(),
                             .room_for = rebuilding_->room_for};
    if (!gone.empty()) rebuilding_->since.push_back(std::move(gone));
    return {};
}

void LiveSet::abandon_rebuild() {
    rebuilding_.reset();
}

Result<LiveChange> LiveSet::finish_rebuild(Image image) {
    if (!rebuilding_) return invalid_request(fmt::format("set {}: no rebuild was begun", name()));
    if (Status added = add_latest(image); !added) {
        abandon_rebuild();
        return tl::unexpected(std::move(added.error()));
    }
    std::optional<Journal> journal;
    const auto start_journal = [&](const std::string& identity) -> Status {
        SIEVE_ASSIGN(journal, Journal::create(journal_path(*state_, name(), identity), rebuilding_->since));
        return {};
    };
    std::vector<SourceProvenance> sources = sources_now();
    Result<PublishedImage> published =
        publish_image(*kernel_, *state_, options_.set, image, rebuilding_->timed_entries, sources,
                      waiting_ ? PutInForce::by_cycle : PutInForce::here, start_journal, observer_);
    if (!published) {
        abandon_rebuild();
        return tl::unexpected(std::move(published.error()));
    }
    journal_ = std::move(journal);
    sources_ = std::move(sources);
    if (waiting_) waiting_->clear(); // the image and its journal have them
    {
        const std::lock_guard lock(*mutex_);
        base_ = std::move(published->identity); // hooks with another image are found by reconcile()
        pending_.clear();
        noted_.clear();
        lost_.reset();
    }
    room_for_ = rebuilding_->room_for;
    due_.reset();
    rebuilding_.reset();
    return reconcile();
}

// --- which sets

// What a node of a fleet brings changes as a whole, with the other sets of its manifest.
static bool changes_with_others(const FileSpec& file) {
    return std::filesystem::path(file.path).parent_path().native().ends_with(
        fmt::format("/{}", link_of_sets_together));
}

bool is_live(const SetConfiguration& set) {
    if (follows_stream(set)) return true;
    const bool is_exact = set.feed.build.kind.kind == SIEVE_KIND_EXACT;
    const bool files = std::all_of(set.sources.begin(), set.sources.end(), [&](const SourceSpec& source) {
        const auto* file = std::get_if<FileSpec>(&source);
        return file != nullptr && !(is_exact && changes_with_others(*file));
    });
    return files && !set.sources.empty() && asks_for_changes_in_place(set) && set.feed.except.empty() &&
           check_live(set);
}

std::string why_live(const SetConfiguration& set) {
    if (follows_stream(set)) return "has bans or CrowdSec's decisions among its sources";
    return fmt::format("is of kind {}", kind_name(set.feed.build.kind.kind));
}

bool has_changed_since_image(const StateDirectory& state, const std::string& set, const SetRecord& record) {
    return !Journal::is_empty(journal_path(state, set, record.identity));
}

Result<Feed> read_live_list(const SetConfiguration& set, const SetRecord& record,
                            const StateDirectory& state) {
    TimedList list;
    SIEVE_TRY(read_timed_list(state.list_path(set.name, record.identity), list));
    if (has_changed_since_image(state, set.name, record)) {
        SIEVE_ASSIGN(const Journal::Content content,
                     Journal::read(journal_path(state, set.name, record.identity)));
        for (const EntryChange& change : content.changes) {
            for (const TimedEntry& gone : change.removed) list.remove(gone.prefix, gone.id);
            for (const TimedEntry& come : change.added) list.add(come);
        }
    }
    Feed feed(set.feed.fields);
    list.for_each_prefix(
        [&](const Prefix& prefix) { feed.keys.add(key_of_address(prefix.address, set.feed.fields)); });
    return feed;
}

Result<std::map<std::string, LiveSet>> changed_since_their_images(const Configuration& configuration,
                                                                  control::Kernel& kernel,
                                                                  const StateDirectory& state,
                                                                  const control::Observer& observer) {
    std::map<std::string, LiveSet> changed;
    for (const SetConfiguration& set : configuration.sets) {
        if (!follows_stream(set)) continue;
        const std::optional<SetRecord> record = state.named(set.name);
        if (!record || !has_changed_since_image(state, set.name, *record)) continue;
        SIEVE_ASSIGN(LiveSet live, LiveSet::open({.set = set}, kernel, state, observer));
        changed.emplace(set.name, std::move(live));
    }
    return changed;
}

} // namespace sieve::service::live
