// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/live_set.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "libsieve/build/key_changes.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/sizing.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/safety/acceptance.hpp"
#include "libsieve/util/digest.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::service::live {

namespace {

// An image is built for twice its list. It is built anew before its lines are as full as the kind allows.
constexpr double bits_per_key_when_built = 24;
constexpr double room_when_built = 2;
constexpr double least_bits_per_key = 22;
constexpr std::uint64_t least_capacity = 4096;
// With fewer, keys soon find no room: such a difference is not even begun.
constexpr double fewest_bits_per_key = 20.5;

// Changes for each key that a filter has room for, after which it is built anew: remainders never grow again,
// and the rate of a full filter has by then grown tenfold (ddlcbf_filter.hpp).
constexpr std::uint64_t most_changes_per_key = 8;
constexpr std::uint64_t longest_journal = std::uint64_t{64} << 20;

// Computing a filter's rate walks the whole filter, so it waits until this share of its keys has changed.
constexpr std::uint64_t keys_per_rate = 64;

// Builds after which a false positive on an address that this host depends on is more than bad luck.
constexpr int most_builds = 4;

// An answer that lists the same decision again gives its end only so exactly.
constexpr std::chrono::seconds same_end{2};

} // namespace

const char* rebuild_reason_text(RebuildReason reason) {
    switch (reason) {
    case RebuildReason::no_image:
        return "there is no image yet";
    case RebuildReason::options:
        return "the set's options have changed";
    case RebuildReason::unsaved:
        return "changes cannot be written where its image is";
    case RebuildReason::unknown:
        return "it is unknown which keys are in the filter";
    case RebuildReason::no_room:
        return "keys do not fit";
    case RebuildReason::mistaken:
        return "the filter mistakes an address that this host depends on for a member";
    case RebuildReason::full:
        return "the filter is about to be full";
    case RebuildReason::worn:
        return "many keys came and went";
    }
    return "";
}

bool is_urgent(RebuildReason reason) {
    return reason != RebuildReason::full && reason != RebuildReason::worn;
}

Result<Image> build_live_image(RebuildOrder order, const SandboxSettings& sandbox) {
    const BuildRequest request{.set = order.set, .feed = order.feed, .sandbox = sandbox};
    Feed keys(order.feed.fields);
    keys.keys = std::move(order.keys);
    SIEVE_ASSIGN(const ReadList list, own_list(std::move(keys), order.set));
    for (int builds = 1;; builds++) {
        SIEVE_ASSIGN(BuiltList built, build_in_sandbox(request, list));
        if (builds == most_builds || !matches_any(built.image, order.strangers))
            return std::move(built.image);
    }
}

// --- opening

std::string LiveSet::journal_path(const std::string& identity) const {
    std::string path = state_->list_path(name(), identity);
    path.resize(path.size() - std::string_view("list").size());
    return path + "journal";
}

Result<LiveSet> LiveSet::open(LiveSetOptions options, const StateDirectory& state,
                              const control::Observer& observer) {
    SIEVE_TRY(check_live(options.set));
    LiveSet set(std::move(options), state);
    SIEVE_TRY(set.load(observer));
    return set;
}

Status LiveSet::load(const control::Observer& observer) {
    const std::optional<SetRecord> record = state_->read(name(), observer.remark);
    if (!record) {
        if (load_list_alone(observer)) return {};
        due(RebuildReason::no_image);
        if (options_.in_force) lose_list(no_list_kept, observer);
        return {};
    }
    base_ = record->identity;
    if (record->build != digest_of(build_text(options_.set))) due(RebuildReason::options);
    Status known = read_claim_list(state_->list_path(name(), base_), list_);
    if (known) known = load_journal(observer);
    if (!known) lose_list(known.error().message, observer);
    return {};
}

// The image is damaged or gone, and its list with the journal may be whole: they are all that is known.
bool LiveSet::load_list_alone(const control::Observer& observer) {
    const std::optional<SetRecord> named = state_->named(name());
    if (!named) return false;
    base_ = named->identity;
    Status known = read_claim_list(state_->list_path(name(), base_), list_);
    if (known) known = load_journal(observer);
    base_.clear(); // no filter can be told to be of that image
    since_base_.clear();
    noted_.clear();
    journal_.reset();
    if (!known) {
        list_ = ClaimList();
        return false;
    }
    due(RebuildReason::no_image);
    return true;
}

// The files stay as they are, so that another process that begins here knows no more.
void LiveSet::lose_list(const std::string& why, const control::Observer& observer) {
    observer.remark(lost_list_text(name(), why));
    lost_ = Lost{.prefixes = list_.prefixes()};
    list_ = ClaimList();
    since_base_.clear();
    due(RebuildReason::unknown);
}

Status LiveSet::load_journal(const control::Observer& observer) {
    Journal::Content content;
    SIEVE_ASSIGN(Journal journal, Journal::open(journal_path(base_), content));
    if (content.torn)
        observer.remark(
            fmt::format("set {}: the last change in its journal was cut short and is left out", name()));
    LiveChange ignored;
    for (const ClaimChange& change : content.changes) enter(change, ignored);
    pending_.clear();
    if (content.finished && !content.torn) noted_ = std::move(content.filters);
    journal_ = std::move(journal);
    return {};
}

// --- the list

void LiveSet::note(Difference& difference, const Prefix& prefix, bool on) {
    const auto [at, is_new] = difference.emplace(prefix, on);
    if (!is_new && at->second != on) difference.erase(at); // there and back
}

// What cannot be written does not come into force: after a crash, nobody would know of it. A new image goes
// where it can be written, with a journal of its own.
Status LiveSet::note_in_journal(const ClaimChange& change) {
    if (!journal_) return {};
    Status noted = journal_->append(change);
    if (!noted) due(RebuildReason::unsaved);
    return noted;
}

void LiveSet::check_files(const control::Observer& observer) {
    if (base_.empty() || lost_ || due_ == RebuildReason::no_image) return;
    const std::optional<SetRecord> record = state_->read(name(), observer.remark);
    const bool is_whole = record && record->identity == base_ &&
                          std::filesystem::exists(state_->list_path(name(), base_)) &&
                          (!journal_ || std::filesystem::exists(journal_->path()));
    if (!is_whole) due(RebuildReason::no_image);
}

void LiveSet::enter(const ClaimChange& change, LiveChange& report) {
    const std::lock_guard lock(*mutex_);
    const auto note_everywhere = [&](const Prefix& prefix, bool on) {
        (on ? report.added : report.removed)++;
        note(since_base_, prefix, on);
        note(pending_, prefix, on);
        if (rebuilding_) note(rebuilding_->difference, prefix, on);
    };
    for (const Claim& claim : change.removed)
        if (list_.remove(claim.prefix, claim.id)) note_everywhere(claim.prefix, false);
    for (const Claim& claim : change.added)
        if (list_.add(claim)) note_everywhere(claim.prefix, true);
}

void LiveSet::nothing_is_refused() {
    if (std::exchange(may_be_refused_, false)) state_->forget_refused(name());
}

void LiveSet::drop_what_changes_nothing(ClaimChange& change) const {
    // A claim that goes and comes at once stays, with its new end.
    ClaimList coming;
    for (const Claim& claim : change.added) coming.add(claim);
    std::erase_if(change.removed, [&](const Claim& claim) {
        return coming.find(claim.prefix, claim.id) || !list_.find(claim.prefix, claim.id);
    });
    std::erase_if(change.added, [&](const Claim& claim) {
        const std::optional<Claim> now = list_.find(claim.prefix, claim.id);
        if (!now) return false;
        if (now->until == never || claim.until == never || follows_bans(options_.set))
            return now->until == claim.until;
        const auto apart = now->until - claim.until;
        return apart < same_end && -apart < same_end;
    });
}

std::optional<Refusal> LiveSet::guard(const ClaimChange& change, bool whole_list) const {
    // The number of claims of each prefix that come, less those that go.
    std::unordered_map<Prefix, std::int64_t, PrefixHash> balance;
    for (const Claim& claim : change.removed) balance[claim.prefix]--;
    for (const Claim& claim : change.added)
        if (!list_.find(claim.prefix, claim.id)) balance[claim.prefix]++;
    std::uint64_t after = list_.prefixes();
    for (const auto& [prefix, difference] : balance) {
        const auto before = static_cast<std::int64_t>(list_.count(prefix));
        if (before == 0 && difference > 0) after++;
        if (before > 0 && before + difference <= 0) after--;
    }
    if (follows_bans(options_.set)) return std::nullopt; // who gave them was asked (take_bans.hpp)
    const bool follows = followed_stream(options_.set) != nullptr;
    const ListSize before{.entries = awaits_sources() ? lost_->prefixes : list_.prefixes()};
    if (after == 0 && !follows) return unless_accepted(empty_list(options_.set), change, before);
    if (base_.empty() || before.entries == 0) return std::nullopt; // there is nothing to compare with
    std::optional<Refusal> refusal = check_size(options_.set, {.entries = after}, before);
    // A stream says of each decision that it ends. A list that is short may have been cut short.
    if (refusal && refusal->guard == Guard::shrink && follows && !whole_list) return std::nullopt;
    return refusal ? unless_accepted(std::move(*refusal), change, before) : std::nullopt;
}

// Nothing if a person has accepted the list that the change leads to.
std::optional<Refusal> LiveSet::unless_accepted(Refusal refusal, const ClaimChange& change,
                                                const ListSize& before) const {
    ClaimList after;
    list_.for_each([&](const Claim& claim) { after.add(claim); });
    for (const Claim& claim : change.removed) after.remove(claim.prefix, claim.id);
    for (const Claim& claim : change.added) after.add(claim);
    return live::unless_accepted(std::move(refusal), options_.set, after, before, *state_);
}

Result<LiveChange> LiveSet::take(control::Kernel& kernel, ClaimChange change, bool whole_list,
                                 const control::Observer& observer) {
    LiveChange report;
    if (const auto range = std::find_if(change.added.begin(), change.added.end(),
                                        [](const Claim& claim) { return !claim.prefix.is_single(); });
        range != change.added.end())
        return bad_input(fmt::format("set {}: {} is a prefix, and only single addresses change in place",
                                     name(), prefix_text(range->prefix)));
    report.kept_out = keep_out(change.added, options_.set, options_.protection);
    drop_what_changes_nothing(change);
    const bool is_found = whole_list && awaits_sources();
    if (change.empty() && whole_list) nothing_is_refused();
    if (!change.empty() || is_found) {
        report.refusal = guard(change, whole_list);
        if (report.refusal) {
            may_be_refused_ = true;
            return report;
        }
        if (is_found) lost_->found = true;
        SIEVE_TRY(note_in_journal(change));
        enter(change, report);
        nothing_is_refused();
        if (rebuilding_) rebuilding_->since.push_back(std::move(change));
    }
    put_in_force(kernel, report, observer);
    return report;
}

Result<LiveChange> LiveSet::change(control::Kernel& kernel, ClaimChange change,
                                   const control::Observer& observer) {
    return take(kernel, std::move(change), false, observer);
}

Result<LiveChange> LiveSet::replace(control::Kernel& kernel, std::vector<Claim> all,
                                    const control::Observer& observer) {
    ClaimChange change;
    {
        ClaimList wanted;
        for (const Claim& claim : all) wanted.add(claim);
        list_.for_each([&](const Claim& claim) {
            if (!wanted.find(claim.prefix, claim.id)) change.removed.push_back(claim);
        });
    }
    change.added = std::move(all);
    return take(kernel, std::move(change), true, observer);
}

// What no guard has a say in.
Result<LiveChange> LiveSet::remove(control::Kernel& kernel, ClaimChange change,
                                   const control::Observer& observer) {
    LiveChange report;
    if (change.removed.empty()) return report;
    SIEVE_TRY(note_in_journal(change));
    enter(change, report);
    if (rebuilding_) rebuilding_->since.push_back(std::move(change));
    put_in_force(kernel, report, observer);
    return report;
}

Result<LiveChange> LiveSet::expire(control::Kernel& kernel, Time now, const control::Observer& observer) {
    const std::vector<Claim> ended = list_.expired(now);
    auto done = remove(kernel, {ended, {}}, observer);
    if (!done)
        for (const Claim& claim : ended) list_.add(claim); // their ends were taken out
    return done;
}

Result<LiveChange> LiveSet::remove_protected(control::Kernel& kernel, const control::Observer& observer) {
    KeptOut kept_out = kept_out_of(list_, options_.set, options_.protection);
    auto done = remove(kernel, {std::move(kept_out.claims), {}}, observer);
    if (done) done->kept_out = std::move(kept_out.texts);
    return done;
}

// --- the filters in force

Result<LiveChange> LiveSet::level(control::Kernel& kernel, const control::Observer& observer) {
    LiveChange report;
    put_in_force(kernel, report, observer);
    return report;
}

void LiveSet::due(RebuildReason reason) {
    if (!due_ || reason < *due_) due_ = reason;
}

control::KeyDifference LiveSet::keys_of(const Difference& difference) const {
    control::KeyDifference keys(fields());
    for (const auto& [prefix, on] : difference)
        (on ? keys.added : keys.removed).add(key_of(prefix.address, fields()));
    return keys;
}

void LiveSet::judge(const control::FilterChanged& filter) {
    if (filter.no_room > 0) due(RebuildReason::no_room);
    if (filter.absent > 0) due(RebuildReason::unknown);
    if (filter.mistaken) due(RebuildReason::mistaken);
    const double bits = 512.0 * static_cast<double>(filter.filter.lines);
    if (static_cast<double>(filter.filter.keys) * least_bits_per_key > bits) due(RebuildReason::full);
    const double room = bits / bits_per_key_when_built;
    if (static_cast<double>(filter.filter.changes) > room * most_changes_per_key) due(RebuildReason::worn);
}

bool LiveSet::is_changeable(const control::LiveFilter& filter) const {
    return filter.changeable && filter.fields == fields();
}

bool LiveSet::is_base_image(const control::LiveFilter& filter) const {
    return filter.changes == 0 &&
           fmt::format("{:016x}{:016x}", filter.identity[0], filter.identity[1]) == base_;
}

bool LiveSet::has_noted(const control::LiveFilter& filter) const {
    const NotedFilter now{filter.map_id, filter.changes};
    return std::ranges::find(noted_, now) != noted_.end() ||
           std::ranges::find(caught_up_, now) != caught_up_.end();
}

void LiveSet::catch_up(control::Kernel& kernel, std::uint32_t map_id) {
    const std::lock_guard lock(*mutex_);
    if (base_.empty() || lost_) return;
    // What is pending will come to all filters that are noted.
    Difference difference = since_base_;
    for (const auto& [prefix, on] : pending_) note(difference, prefix, !on);
    const control::KeyDifference keys = keys_of(difference);
    if (keys.empty()) return;
    const auto changed = control::change_coming_filter(
        kernel, name(), map_id, [&](const control::LiveFilter& filter) -> const control::KeyDifference* {
            return is_changeable(filter) && is_base_image(filter) ? &keys : nullptr;
        });
    if (changed && changed->touched && changed->no_room == 0 && changed->absent == 0)
        caught_up_.push_back({map_id, changed->filter.changes});
}

void LiveSet::put_in_force(control::Kernel& kernel, LiveChange& report, const control::Observer& observer) {
    const auto begin = std::chrono::steady_clock::now();
    if (!base_.empty() && !lost_) {
        auto held = control::LiveFilters::hold(kernel, name(), observer);
        const std::lock_guard lock(*mutex_);
        std::optional<control::KeyDifference> latest;
        std::optional<control::KeyDifference> whole;
        bool unknown = false;
        const auto with_strangers = [&](control::KeyDifference keys) {
            for (const uint128 address : protected_addresses(options_.set, options_.protection))
                keys.strangers.push_back(key_of(address, fields()));
            return keys;
        };
        const auto if_it_fits = [&](const control::LiveFilter& filter,
                                    const control::KeyDifference& keys) -> const control::KeyDifference* {
            const auto after = static_cast<double>(filter.keys + keys.added.size()) -
                               static_cast<double>(keys.removed.size());
            if (after * fewest_bits_per_key <= 512.0 * static_cast<double>(filter.lines)) return &keys;
            due(RebuildReason::no_room);
            return nullptr;
        };
        const auto difference_for = [&](const control::LiveFilter& filter) -> const control::KeyDifference* {
            if (is_changeable(filter)) {
                if (has_noted(filter)) {
                    if (!latest) latest = with_strangers(keys_of(pending_));
                    return if_it_fits(filter, *latest);
                }
                if (is_base_image(filter)) {
                    if (!whole) whole = with_strangers(keys_of(since_base_));
                    return if_it_fits(filter, *whole);
                }
            }
            unknown = true;
            return nullptr;
        };
        changes_since_rate_ += pending_.size();
        const bool rates = changes_since_rate_ * keys_per_rate > list_.prefixes();
        auto filters = held ? held->change(difference_for, rates) : tl::unexpected(std::move(held.error()));
        if (filters) {
            if (rates) changes_since_rate_ = 0;
            std::vector<NotedFilter> noted;
            for (const control::FilterChanged& filter : *filters) {
                if (!filter.touched) continue;
                judge(filter);
                report.keys += filter.done;
                report.expected_fpr = std::max(report.expected_fpr, filter.expected_fpr.value_or(0));
                if (filter.no_room > 0 || filter.absent > 0) continue;
                report.filters++;
                noted.push_back({filter.filter.map_id, filter.filter.changes});
            }
            if (unknown) due(RebuildReason::unknown);
            const bool news = noted != noted_ || !pending_.empty();
            noted_ = std::move(noted);
            caught_up_.clear(); // they are noted, or never came into force
            pending_.clear();
            // If this cannot be written, the next start rebuilds.
            if (news && journal_) (void)journal_->append_done(noted_);
            if (journal_ && journal_->bytes() > longest_journal) due(RebuildReason::worn);
        } else {
            if (filters.error().kind == ErrorKind::unfinished) {
                noted_.clear();
                caught_up_.clear();
                due(RebuildReason::unknown);
            }
            report.delayed = std::move(filters.error());
        }
    }
    report.taken =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
    report.rebuild_due = due_;
}

// --- rebuilding

Result<RebuildOrder> LiveSet::begin_rebuild() {
    SIEVE_TRY(write_next_list(list_, *state_, name()));
    RebuildOrder order{.set = name(), .feed = options_.set.feed, .keys = KeySet(fields()), .strangers = {}};
    order.keys.reserve(list_.prefixes());
    list_.for_each_prefix([&](const Prefix& prefix) { order.keys.add(key_of(prefix.address, fields())); });
    if (order.keys.empty()) order.keys.add(key_of(placeholder.address, fields()));
    const double capacity = std::max(static_cast<double>(least_capacity),
                                     room_when_built * static_cast<double>(list_.prefixes()));
    BuildOptions& build = order.feed.build;
    const double bits = build.bits_per_key.value_or(bits_per_key_when_built) * capacity;
    const double other_lines = SIEVE_FIRST_LINE + witness_count(order.keys.size());
    build.bits_per_key.reset();
    build.memory = static_cast<std::uint64_t>(bits / 8 + other_lines * sizeof(sieve_line));
    build.kind.kind = SIEVE_KIND_DDLCBF;
    order.strangers = protected_addresses(options_.set, options_.protection);
    rebuilding_ = Rebuilding{.since = {}, .difference = {}, .claims = list_.claims()};
    return order;
}

Status LiveSet::add_latest(Image& image) {
    KeySet added(fields());
    ClaimChange gone; // stays in the image, and is removed from the filters
    Difference difference;
    for (const auto& [prefix, on] : rebuilding_->difference) {
        if (on) {
            added.add(key_of(prefix.address, fields()));
        } else {
            gone.removed.push_back({prefix, 0, never});
            difference.emplace(prefix, false);
        }
    }
    if (added.empty()) return {};
    SIEVE_ASSIGN(const DifferenceReport done, apply_difference(image.lookup(), image.file(), image.filter(),
                                                               KeySet(fields()), added, true));
    if (done.no_room > 0)
        return bad_input(fmt::format("set {}: {} keys that came while its image was built do not fit into it",
                                     name(), done.no_room));
    // It is the image of this list.
    image.file().entries += added.size();
    image.file().changes = 0;
    ClaimList list = list_;
    for (const Claim& claim : gone.removed) list.add(claim);
    SIEVE_TRY(write_next_list(list, *state_, name()));
    rebuilding_ = Rebuilding{.since = {}, .difference = std::move(difference), .claims = list.claims()};
    if (!gone.empty()) rebuilding_->since.push_back(std::move(gone));
    return {};
}

void LiveSet::abandon_rebuild() {
    rebuilding_.reset();
}

Result<LiveChange> LiveSet::finish_rebuild(control::Kernel& kernel, Image image,
                                           const control::Observer& observer) {
    if (!rebuilding_) return invalid_request(fmt::format("set {}: no rebuild was begun", name()));
    if (Status added = add_latest(image); !added) {
        abandon_rebuild();
        return tl::unexpected(std::move(added.error()));
    }
    std::optional<Journal> journal;
    const auto start_journal = [&](const std::string& identity) -> Status {
        SIEVE_ASSIGN(journal, Journal::create(journal_path(identity), rebuilding_->since));
        return {};
    };
    Result<Published> published =
        publish_image(kernel, *state_, options_.set, image, rebuilding_->claims, start_journal, observer);
    if (!published) {
        abandon_rebuild();
        return tl::unexpected(std::move(published.error()));
    }
    journal_ = std::move(journal);
    {
        const std::lock_guard lock(*mutex_);
        base_ = std::move(published->identity); // hooks with another image are found by level()
        since_base_ = std::move(rebuilding_->difference);
        pending_.clear();
        noted_.clear();
        caught_up_.clear();
        lost_.reset();
    }
    due_.reset();
    rebuilding_.reset();
    return level(kernel, observer);
}

Result<LiveChange> LiveSet::rebuild(control::Kernel& kernel, const SandboxSettings& sandbox,
                                    const control::Observer& observer) {
    SIEVE_ASSIGN(RebuildOrder order, begin_rebuild());
    Result<Image> image = build_live_image(std::move(order), sandbox);
    if (!image) {
        abandon_rebuild();
        return tl::unexpected(std::move(image.error()));
    }
    return finish_rebuild(kernel, std::move(*image), observer);
}

// --- which sets

bool is_live(const SetConfiguration& set) {
    if (follows_stream(set)) return true;
    const bool files = std::all_of(set.sources.begin(), set.sources.end(), [](const SourceSpec& source) {
        return std::holds_alternative<FileSpec>(source);
    });
    return files && !set.sources.empty() && set.feed.build.kind.kind == SIEVE_KIND_DDLCBF && check_live(set);
}

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

} // namespace sieve::service::live
