// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/live_updater.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <limits>
#include <map>
#include <ranges>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/keys/address_key.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/lists/ban.hpp"
#include "libsieve/service/lists/origin_names.hpp"
#include "libsieve/service/lists/watched_list.hpp"
#include "libsieve/service/live/background.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/live/range_set.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/live/removal.hpp"
#include "libsieve/service/live/whole_lists.hpp"
#include "libsieve/service/safety/acceptance.hpp"
#include "libsieve/service/sources/backoff.hpp"
#include "libsieve/service/sources/sandbox.hpp"
#include "libsieve/service/sources/source_schedule.hpp"
#include "libsieve/util/random/chance.hpp"
#include "libsieve/util/system/memory_file.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve::service::live {

namespace {

// While another controller holds the lock.
constexpr std::chrono::milliseconds soon{20};
// While a list is being written.
constexpr std::chrono::seconds until_written{1};
constexpr std::chrono::seconds retry{5};
// For a cycle that puts a list in force with its new action. Bans wait as long.
constexpr std::chrono::seconds longest_wait{5};
// A state directory that has room, and takes no image all the same.
constexpr std::chrono::minutes until_next_move{10};
// For the API, before an entry ends of which its answer may say that it ends later.
constexpr std::chrono::seconds longest_wait_for_answer{1};
// A ledger of bans that changed without a word.
constexpr std::chrono::seconds look_at_bans{10};
// A clock that moved by less was not set, but kept right.
constexpr std::chrono::seconds clock_is_set{2};
constexpr std::uint64_t most_list_bytes = std::uint64_t{1} << 30;
// Of lines with one address, and of decisions about one: each is found by a walk past the others.
constexpr std::uint64_t most_lines_of_one = 100;
constexpr std::uint64_t most_decisions_of_one = 1000;

// A line that came or went can be told from the others only where each line is an entry.
bool has_lines(const SetConfiguration& set) {
    return set.feed.format.syntax == ListSyntax::automatic || set.feed.format.syntax == ListSyntax::plain;
}

// Whether a match with the set lets a packet pass. Without its members, what judges behind it would drop
// them.
bool lets_packets_pass(const Configuration& configuration, const SetConfiguration& set) {
    return std::ranges::any_of(configuration.interfaces, [&](const InterfaceConfiguration& entry) {
        return std::ranges::find(entry.sets, set.name) != entry.sets.end() &&
               (set.action ? set.action->action : control::natural_action(entry.default_action).action) ==
                   SIEVE_ACTION_PASS;
    });
}

class Updater final : public LiveUpdater {
  public:
    Updater(LiveUpdaterSettings settings, control::Kernel& kernel, const StateDirectory& state,
            HostAddresses& host, const SetConfiguration& set)
        : settings_(std::move(settings)), kernel_(kernel), state_directory_(state), host_(host), set_(set) {
        observer_.remark = [this](const std::string& text) { tell_remark(text); };
        if (!settings_.fetch) settings_.fetch = &fetch_decisions;
        if (follows_bans(set_)) {
            bans_.emplace(settings_.configuration.state_directory, set_.name);
            sources_.push_back({Part::bans, SourceSchedule(look_at_bans)});
        }
        if (const CrowdsecSpec* stream = followed_stream(set_)) {
            crowdsec_ = *stream;
            sources_.push_back({Part::followed, SourceSchedule(crowdsec_.poll)});
        }
        if (sources_.empty()) {
            for (const SourceSpec& source : set_.sources)
                if (const auto* file = std::get_if<FileSpec>(&source))
                    files_.emplace_back(file->path, most_list_bytes, has_lines(set_));
        } else if (!sources_of_lists(set_).empty()) {
            whole_lists_.emplace(set_, settings_.sandbox, state_directory_, settings_.step_soon);
            sources_.push_back({Part::lists, SourceSchedule::of_lists(set_.refresh)});
        }
    }

    Status start() {
        SIEVE_ASSIGN(const Protection protection, read_protection());
        const auto options_of = [&](const SetConfiguration& set) {
            return LiveSetOptions{set, protection,
                                  something_is_in_force(kernel_, settings_.configuration, set.name) ||
                                      lets_packets_pass(settings_.configuration, set),
                                  action_digest(settings_.configuration, set),
                                  [this, name = set.name](const FindLeaving& leaving) {
                                      return refuse_removal(kernel_, settings_.configuration, name, leaving,
                                                            host_);
                                  }};
        };
        SIEVE_ASSIGN(LiveSet live, LiveSet::open(options_of(set_), kernel_, state_directory_, observer_));
        live_.emplace(std::move(live));
        if (!sources_.empty()) {
            const std::string name = range_set_name(set_.name);
            const SetConfiguration* range_set = settings_.configuration.find_set(name);
            if (range_set == nullptr)
                return invalid_request(
                    fmt::format("set {}: the configuration lacks its range set {}", set_.name, name));
            control::Observer of_ranges = observer_;
            of_ranges.remark = [this, name](const std::string& text) { tell_remark(text, name); };
            ranges_.emplace(RangeSet::open(options_of(*range_set), parts_of(set_), kernel_, state_directory_,
                                           std::move(of_ranges)));
        }
        // A ledger of bans is at hand.
        if (bans_ && live_->rebuild_due() == RebuildReason::no_image) ask(sources_.front());
        // A first image, so that a cycle can put the set in force at once. Nobody knows the list of a stream
        // yet. That of a file may take its time, and other sets do not wait for it: a step reads it.
        const bool lacks_image =
            !sources_.empty() && live_->rebuild_due() == RebuildReason::no_image && has_list();
        // One that lacks members, since there is no room for them, is not to come into force.
        if (lacks_image || live_->rebuild_due() == RebuildReason::no_room)
            if (Status made = rebuild_now(); !made) {
                if (settings_.needs_images) return made;
                put_off(rebuild_at_, set_.name, std::move(made.error()));
            }
        Status published = publish_if_due();
        if (!published && settings_.needs_images) return published;
        show();
        return {};
    }

    Time step() override {
        const bool woken = woken_.exchange(false);
        const bool filters_came = filters_came_.exchange(false);
        const Time begin = now();
        watch_the_clock(begin);
        if (!(bans_ && woken)) protect(); // else whoever gave a ban has asked the host just now
        reconciled_ = false;
        if (filters_came) {
            live_->check_files();
            if (ranges_) ranges_->check_files();
            if (begin >= home_at_ && live_->can_move_home()) live_->move_home();
        }
        // What is asked may say that something ends later.
        if (woken && is_accepted()) ask_for_all(begin);
        for (PartSource& source : sources_)
            if (is_due(source, begin, woken)) ask(source);
        if (begin >= ends_at()) expire(begin);
        if (!files_.empty() && (woken || begin >= files_at_)) look_at_files(begin);
        if (!reconciled_ && (filters_came || begin >= reconcile_at_)) tell_change(live_->reconcile());
        if (live_->waits_for_cycle()) await_cycle();
        (void)publish_if_due();
        release_if_due();
        rebuild_if_due();
        note_sources();
        show();
        return next_step();
    }

    void wake() override { woken_ = true; }
    void reconcile_soon() override { filters_came_ = true; }
    void catch_up(std::uint32_t map_id) override { live_->catch_up(map_id); }

    [[nodiscard]] State state() const override {
        const std::lock_guard lock(shown_mutex_);
        return shown_;
    }

    [[nodiscard]] bool is_banned(const Prefix& single) const override {
        return live_ && live_->is_banned(single);
    }

  private:
    // What says all of a part of the list, or how it changes, when it is asked.
    struct PartSource {
        Part part = Part::followed;
        SourceSchedule schedule;
        bool in_step = false;        // the part is what the source had when it was last asked
        bool again = false;          // while it was asked, it became due to say its whole list
        std::string last_error = {}; // why it is not
        std::string accept = {};     // Refusal::accept, if that is why
    };
    struct Answer {
        SourceSchedule::Fetch fetch{};
        tl::expected<Decisions, GatherFailure> decisions;
    };

    [[nodiscard]] Time now() const { return settings_.now ? settings_.now() : current_time(); }

    [[nodiscard]] std::chrono::milliseconds uptime() const {
        if (settings_.uptime) return settings_.uptime();
        // A test's clock is not set.
        if (settings_.now) return std::chrono::milliseconds(now().time_since_epoch());
        struct timespec time {};
        ::clock_gettime(CLOCK_BOOTTIME, &time);
        return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::seconds(time.tv_sec) +
                                                                     std::chrono::nanoseconds(time.tv_nsec));
    }

    // When somebody sets the clock, such as to the time of a server after the start, then all times that were
    // noted before are off by as much.
    void watch_the_clock(Time at) {
        const Time booted = at - uptime();
        const auto by = booted_ ? booted - *booted_ : std::chrono::milliseconds(0);
        booted_ = booted;
        if (std::chrono::abs(by) < clock_is_set) return;
        files_at_ = rebuild_at_ = publish_at_ = release_at_ = home_at_ = at;
        answer_is_off_ = true;
        if (reconcile_at_ != never) reconcile_at_ = at;
        if (wait_until_ != never) wait_until_ = at;
        if (sources_.empty()) return;
        ask_for_all(at);
        if (!std::exchange(ends_wait_, true))
            tell_remark(fmt::format("set {}: the clock was set by {} s; {} end once {} said all of them",
                                    set_.name, std::chrono::duration_cast<std::chrono::seconds>(by).count(),
                                    crowdsec_.url.empty() ? "bans" : "decisions",
                                    crowdsec_.url.empty() ? "the ledger has" : "crowdsec has"));
    }

    Result<Protection> read_protection() {
        SIEVE_ASSIGN(std::vector<HostAddress> host, host_.read());
        return protection_of(settings_.configuration, set_, std::move(host));
    }

    [[nodiscard]] bool sources_are_in_step() const {
        return sources_.empty() ? files_in_step_ : std::ranges::all_of(sources_, &PartSource::in_step);
    }
    // A new filter is to come into force as soon as it is there.
    [[nodiscard]] bool awaits_filter() const {
        return live_ && (live_->waits_for_cycle() || is_rebuild_urgent() || (ranges_ && ranges_->is_due()));
    }
    [[nodiscard]] bool is_rebuild_urgent() const {
        return live_->rebuild_due() && is_urgent(*live_->rebuild_due());
    }
    // The list is what the source has, and nothing keeps it out of force.
    [[nodiscard]] bool is_in_step() const {
        return sources_are_in_step() && !awaits_filter() && delay_error_.empty();
    }

    // --- telling

    void tell(LiveEvent event) {
        if (event.set.empty()) event.set = set_.name;
        if (!event.entries) event.entries = entries_of(event.set);
        event.in_step = is_in_step();
        if (settings_.tell) settings_.tell(event);
    }
    [[nodiscard]] std::optional<std::uint64_t> entries_of(const std::string& set) const {
        const auto unless_lost = [](const auto& one) -> std::optional<std::uint64_t> {
            if (!one || one->awaits_sources()) return std::nullopt;
            return one->list().prefixes();
        };
        return ranges_ && set == ranges_->name() ? unless_lost(ranges_) : unless_lost(live_);
    }
    // `set`: if the remark is about the range set.
    void tell_remark(const std::string& text, const std::string& set = {}) {
        tell({.what = LiveEvent::What::remark, .set = set, .text = text});
    }
    void tell_failure(const std::string& set, Error error, std::optional<Guard> guard = {},
                      bool others_go_on = false) {
        last_error_ = error.message;
        tell({.what = LiveEvent::What::failed,
              .set = set,
              .guard = guard,
              .error = std::move(error),
              .others_go_on = others_go_on});
    }
    // It is tried again at that time. The first failure is told, and then whenever it changes.
    void put_off(Time& until, const std::string& set, Error error) {
        until = now() + retry;
        last_error_ = error.message;
        if (std::exchange(image_error_, error.message) != error.message)
            tell({.what = LiveEvent::What::put_off, .set = set, .error = std::move(error)});
    }
    void tell_refusal(const SetConfiguration& set, Refusal refusal) {
        offer_acceptance(refusal, set, settings_.configuration, state_directory_,
                         [&](const std::string& text) { tell_remark(text, set.name); });
        accept_ = refusal.accept;
        tell_failure(set.name, {ErrorKind::bad_input, "refused: " + refusal.message, {}}, refusal.guard);
    }
    // The same addresses are kept out at every look, and named once.
    void tell_kept_out(const std::string& set, const std::vector<std::string>& kept_out) {
        std::string text;
        for (const std::string& one : kept_out)
            if (std::find(known_kept_out_.begin(), known_kept_out_.end(), one) == known_kept_out_.end())
                text += (text.empty() ? "" : "; ") + one;
        if (!text.empty())
            tell_remark(fmt::format("set {}: not taken, since this host depends on them: {}", set, text),
                        set);
        if (!kept_out.empty()) known_kept_out_ = kept_out;
    }
    // Which filters have the list since a change or a new image.
    void note_filters(const LiveChange& change) {
        if (!change.looked) return;
        filters_ = change.filters;
        if (change.delayed) {
            reconcile_at_ = now() + soon;
            if (std::exchange(delay_error_, change.delayed->message) != change.delayed->message)
                tell({.what = LiveEvent::What::put_off, .error = *change.delayed});
        } else {
            reconcile_at_ = change.comes_back_behind ? now() + retry : never;
            delay_error_.clear();
            reconciled_ = true;
        }
    }
    void tell_change(const LiveChange& change) {
        tell_kept_out(set_.name, change.kept_out);
        if (change.refusal) return tell_refusal(set_, *change.refusal);
        note_filters(change);
        if (change.added + change.removed + change.keys > 0)
            tell({.what = LiveEvent::What::changed, .change = change});
    }
    void show() {
        State state;
        state.entries = entries_of(set_.name);
        state.timed_entries = live_->list().timed_entries();
        if (ranges_) {
            state.ranges = entries_of(ranges_->name());
            state.timed_entries += ranges_->list().timed_entries();
        }
        state.in_step = is_in_step();
        state.at_work =
            building_.is_at_work() || asking_.is_at_work() || (whole_lists_ && whole_lists_->reads());
        state.failures = file_failures_;
        state.asked = asked_;
        if (!state.in_step) state.last_error = last_error_;
        if (!state.in_step) state.accept = accept_;
        for (const PartSource& source : sources_ | std::views::reverse) {
            state.failures = std::max(state.failures, source.schedule.failures());
            if (!source.in_step && !source.last_error.empty()) state.last_error = source.last_error;
            if (!source.accept.empty()) state.accept = source.accept;
        }
        if (state.failures == 0)
            state.put_off = awaits_filter() && !image_error_.empty() ? image_error_ : delay_error_;
        if (!crowdsec_.url.empty()) state.origins = count_by_origin();
        if (bans_) show_bans(state);
        const std::lock_guard lock(shown_mutex_);
        shown_ = std::move(state);
    }

    [[nodiscard]] std::vector<OriginCount> count_by_origin() const {
        std::map<std::string, OriginCount> counts;
        for (std::size_t code = 0; code <= most_origins; code++)
            for (const TimedList* list : {&live_->list(), &ranges_->list()}) {
                const auto origin = static_cast<std::uint8_t>(code);
                const std::size_t ipv4 = list->timed_entries(true, origin);
                const std::size_t ipv6 = list->timed_entries(false, origin);
                if (ipv4 + ipv6 == 0) continue;
                OriginCount& count = counts[origins_.name_of(origin)];
                count.ipv4 += ipv4;
                count.ipv6 += ipv6;
            }
        std::vector<OriginCount> all;
        for (auto& [name, count] : counts) all.push_back({name, count.ipv4, count.ipv6});
        return all;
    }

    // Whether a person has accepted a list that is not in force yet.
    [[nodiscard]] bool is_accepted() const {
        const auto accepted = state_directory_.accepted();
        return accepted.contains(set_.name) || accepted.contains(range_set_name(set_.name));
    }

    // What the list has and packets do not meet.
    void show_bans(State& state) const {
        const PartSource& bans = sources_.front();
        state.follows_bans = true;
        if (bans.in_step) state.ledger = bans_->mark();
        state.settles = !delay_error_.empty() || building_.is_at_work() || awaits_filter() || can_release();
        if (!bans.in_step)
            state.lacks = bans.last_error;
        else if (live_->awaits_sources() || (ranges_ && ranges_->awaits_sources()))
            state.lacks = "what is in force stays until all sources of the set have said their lists";
        else if (state.settles)
            state.lacks = image_error_.empty() ? "a new filter is being built" : image_error_;
        else if (filters_ == 0)
            state.lacks = "no interface has the set in force";
    }

    // --- what changes the list

    // What this host depends on may have changed, such as its gateway.
    void protect() {
        const auto protection = read_protection();
        if (!protection) return;
        std::vector<uint128> addresses;
        for (const HostAddress& host : protection->host) addresses.push_back(host.address);
        const std::vector<uint128> before = protected_.value_or(std::vector<uint128>());
        if (std::exchange(protected_, addresses) == addresses) return;
        live_->set_protection(*protection);
        if (ranges_) ranges_->set_protection(*protection);
        const bool some_gone = std::ranges::any_of(
            before, [&](uint128 one) { return std::ranges::find(addresses, one) == addresses.end(); });
        if (some_gone && !known_kept_out_.empty()) take_again();
        (void)took(live_->remove_protected());
        if (ranges_) tell_kept_out(ranges_->name(), ranges_->remove_protected().kept_out);
    }
    // What was kept out because of an address that this host depended on.
    void take_again() {
        known_kept_out_.clear();
        ask_for_all(now());
        for (WatchedList& file : files_) file.forget();
        files_at_ = now();
    }

    // When entries may end.
    [[nodiscard]] Time ends_at() const {
        if (ends_wait_) return never;
        return asking_.is_at_work() ? asked_at_ + longest_wait_for_answer : Time::min();
    }
    void expire(Time at) {
        if (live_->next_expiry().value_or(never) <= at) (void)took(live_->expire(at));
        if (ranges_ && ranges_->next_expiry().value_or(never) <= at) (void)ranges_->expire(at);
    }

    // --- sources that say a part of the list

    // All of them say their whole lists next.
    void ask_for_all(Time at) {
        for (PartSource& source : sources_) {
            source.schedule.restart(at);
            source.again = true;
        }
        if (whole_lists_) whole_lists_->forget();
    }
    // Another thread asks it.
    [[nodiscard]] bool is_asked(const PartSource& source) const {
        return (source.part == Part::lists && whole_lists_->reads()) ||
               (source.part == Part::followed && asking_.is_at_work());
    }
    [[nodiscard]] bool is_due(const PartSource& source, Time at, bool woken) const {
        if (at >= source.schedule.next_poll() || is_asked(source)) return true;
        return woken &&
               (source.part == Part::bans || (source.part == Part::lists && whole_lists_->files_changed()));
    }
    // Begins to, or takes what came of it.
    void ask(PartSource& source) {
        if (!is_asked(source)) source.again = false;
        if (source.part == Part::lists) return read_lists(source);
        if (source.part == Part::followed) return ask_api(source);
        SourceSchedule::Fetch fetch = source.schedule.next_fetch(now());
        auto answer = read_bans(fetch);
        if (!answer) return failed(source, std::move(answer.error()));
        take_answer(source, fetch, *answer);
    }
    void ask_api(PartSource& source) {
        if (!is_asked(source)) {
            asked_at_ = now();
            answer_is_off_ = false;
            return asking_.begin([ask = settings_.fetch, crowdsec = crowdsec_, at = asked_at_,
                                  fetch = source.schedule.next_fetch(asked_at_),
                                  sandbox = settings_.sandbox]() -> Answer {
                return {fetch, ask(crowdsec, fetch, at, sandbox)};
            });
        }
        std::optional<Answer> done = asking_.result();
        if (!done) return;
        auto& [fetch, answer] = *done;
        if (!answer) return failed(source, std::move(answer.error()));
        if (answer_is_off_) return; // the whole list is due
        if (const Status few = check_repeats(answer->added); !few) return failed(source, {few.error(), {}});
        tell_left_out(*answer);
        origins_.number(*answer);
        take_answer(source, fetch, *answer);
    }
    void take_answer(PartSource& source, SourceSchedule::Fetch fetch, Decisions& answer) {
        if (take(source, fetch, {std::move(answer.deleted), std::move(answer.added)})) taken(source, fetch);
    }
    // Nobody decides so often about one address.
    [[nodiscard]] Status check_repeats(const std::vector<TimedEntry>& added) const {
        std::unordered_map<Prefix, std::uint64_t, PrefixHash> counts;
        for (const TimedEntry& timed_entry : added) {
            const auto [at, is_new] = counts.try_emplace(timed_entry.prefix, 0);
            if (is_new)
                at->second = (timed_entry.prefix.is_single() ? live_->list() : ranges_->list())
                                 .count(timed_entry.prefix);
            // Those that are on the list may be among them.
            if (++at->second > 2 * most_decisions_of_one)
                return bad_input(fmt::format("more than {} decisions about {}, expected fewer",
                                             most_decisions_of_one, prefix_text(timed_entry.prefix)));
        }
        return {};
    }
    // Begins to, or takes what was read.
    void read_lists(PartSource& source) {
        if (!whole_lists_->reads()) return whole_lists_->begin(may_lack());
        auto done = whole_lists_->result();
        if (!done) return;
        take_lists(source, *done);
        // Whoever changed a file meanwhile has woken this already.
        if (whole_lists_->files_changed()) source.schedule.restart(now() + until_written);
    }
    [[nodiscard]] WholeLists::MayLack may_lack() const {
        using MayLack = WholeLists::MayLack;
        if (lets_packets_pass(settings_.configuration, set_) || live_->awaits_sources() ||
            ranges_->awaits_sources())
            return MayLack::none;
        const bool has_any =
            prefixes_in(live_->list(), Part::lists) > 0 || prefixes_in(ranges_->list(), Part::lists) > 0;
        return has_any ? MayLack::never_taken : MayLack::all;
    }
    void take_lists(PartSource& source, tl::expected<WholeLists::Content, GatherFailure>& done) {
        if (!done) {
            if (done.error().error.kind == ErrorKind::changed_meanwhile)
                return source.schedule.restart(now() + until_written);
            return failed(source, std::move(done.error()));
        }
        for (const std::string& text : done->remarks) tell_remark(text);
        if (!done->unchanged) {
            EntryChange lists{.removed = {}, .added = std::move(done->entries)};
            if (done->has_first_answer) let_grow(std::numeric_limits<double>::infinity());
            const bool taken = take(source, SourceSchedule::Fetch::whole_list, std::move(lists));
            let_grow(set_.guards.most_growth);
            if (!taken) return whole_lists_->forget(); // a part of it may have been taken
        }
        whole_lists_->keep();
        if (source.again) whole_lists_->forget();
        note_lists();
        if (done->behind) return failed(source, std::move(*done->behind), true);
        taken(source, SourceSchedule::Fetch::whole_list);
    }
    // How much the list may grow at once, by its guards.
    void let_grow(double most_growth) {
        live_->let_grow(most_growth);
        ranges_->let_grow(most_growth);
    }
    void note_lists() {
        if (!whole_lists_ || whole_lists_->are_noted()) return;
        const auto lock = alone();
        whole_lists_->note();
    }
    void taken(PartSource& source, SourceSchedule::Fetch fetch) {
        source.schedule.taken(fetch, now(), chance());
        if (source.again) source.schedule.restart(now());
        source.in_step = true;
        source.last_error.clear();
        source.accept.clear();
        asked_ = now();
        ends_wait_ = ends_wait_ && !std::ranges::all_of(sources_, [](const PartSource& one) {
                         return one.part == Part::lists || one.schedule.in_step();
                     });
    }
    // The first failure is told, and then whenever it changes.
    void failed(PartSource& source, GatherFailure failure, bool others_go_on = false) {
        const bool again = source.schedule.failures() > 0 && failure.error.message == source.last_error;
        source.in_step = false;
        source.last_error = failure.error.message;
        source.accept.clear();
        source.schedule.failed(now(), chance(), failure.retry_after);
        if (!again) tell_failure(set_.name, std::move(failure.error), {}, others_go_on);
    }
    // The ledger as a stream: all bans, or what came since.
    tl::expected<Decisions, GatherFailure> read_bans(SourceSchedule::Fetch& fetch) {
        constexpr std::uint64_t id = entry_id(0, ban_origin);
        Bans bans;
        std::unordered_set<Prefix, PrefixHash> removed;
        bool flushed = false;
        const auto note = [&](BanChange&& change) {
            flushed = flushed || change.step == BanStep::flush;
            if (change.step == BanStep::remove) removed.insert(change.prefix);
            if (change.step == BanStep::add) removed.erase(change.prefix);
            change_bans(bans, change);
        };
        if (fetch == SourceSchedule::Fetch::whole_list) {
            if (const Status tidied = bans_->tidy(now()); !tidied)
                tell_remark(fmt::format("set {}: {}", set_.name, tidied.error().message));
            bans_->read_all_next();
        }
        Result<bool> all = bans_->read(note);
        if (all && !*all && flushed) { // only the whole ledger says what is left
            bans = {};
            bans_->read_all_next();
            all = bans_->read(note);
        }
        if (!all) {
            bans_->read_all_next();
            return tl::unexpected(std::move(all.error()));
        }
        if (*all) fetch = SourceSchedule::Fetch::whole_list;
        Decisions answer;
        for (const auto& [prefix, ban] : bans) {
            if (!ban.is_over(now()))
                answer.added.push_back({prefix, id, ban.until});
            else
                removed.insert(prefix);
        }
        if (!*all)
            for (const Prefix& prefix : removed) answer.deleted.push_back({prefix, id, never});
        return answer;
    }
    void tell_left_out(const Decisions& answer) {
        if (answer.ignored > 0 && !std::exchange(told_ignored_, true))
            tell_remark(fmt::format("set {}: {} of another sort and ignored, such as those of {}", set_.name,
                                    counted(answer.ignored, "decision is", "decisions are"),
                                    answer.first_ignored));
        if (answer.unusable > 0 &&
            answer.first_unusable != std::exchange(told_unusable_, answer.first_unusable))
            tell_remark(fmt::format("set {}: {} unusable and left out: {}", set_.name,
                                    counted(answer.unusable, "decision is", "decisions are"),
                                    answer.first_unusable));
    }
    // False: the answer, or a part of it, was refused, and the whole list is to be asked for.
    bool take(PartSource& source, SourceSchedule::Fetch fetch, const EntryChange& answer) {
        EntryChange singles;
        EntryChange prefixes;
        for (const TimedEntry& timed_entry : answer.added)
            (timed_entry.prefix.is_single() ? singles : prefixes).added.push_back(timed_entry);
        for (const TimedEntry& timed_entry : answer.removed)
            (timed_entry.prefix.is_single() ? singles : prefixes).removed.push_back(timed_entry);
        const bool whole = fetch == SourceSchedule::Fetch::whole_list;
        const bool comes_with_action = whole && live_->comes_with_action(source.part);
        accept_.clear();
        bool taken = !(source.part == Part::lists && answer.added.empty() && refuses_empty_lists());
        // Where one half of a whole list is refused, the other may have been cut short as well.
        if (taken && whole)
            if (auto refusal = ranges_->refuses_all(source.part, prefixes.added)) {
                tell_refusal(ranges_->configuration(), std::move(*refusal));
                taken = false;
            }
        // So a packet of such an address meets the one or the other.
        if (taken) live_->hold(coming(prefixes.added));
        if (taken && (whole || !singles.empty())) {
            taken = took(whole ? live_->replace(source.part, std::move(singles.added))
                               : live_->change(source.part, std::move(singles)));
        }
        if ((whole && taken) || (!whole && !prefixes.empty())) {
            const Result<RangeSet::Change> done = whole ? ranges_->replace(source.part, prefixes.added)
                                                        : ranges_->change(source.part, prefixes);
            taken = took_ranges(done) && taken; // each half says why it is refused
            if (comes_with_action && taken && done->added + done->removed > 0) live_->wait_for_cycle();
        }
        if (taken) return true;
        source.in_step = false;
        source.last_error = last_error_;
        source.accept = std::exchange(accept_, {});
        source.schedule.failed(now(), chance());
        return false;
    }
    // What comes with these prefixes, and what has come and may not be in force.
    [[nodiscard]] std::vector<AddressRange> coming(const std::vector<TimedEntry>& prefixes) const {
        std::vector<AddressRange> coming;
        for (const TimedEntry& timed_entry : prefixes)
            if (!ranges_->list().contains(timed_entry.prefix)) coming.push_back(timed_entry.prefix.range());
        if (ranges_->awaits_image())
            ranges_->list().for_each_prefix([&](const Prefix& prefix) { coming.push_back(prefix.range()); });
        return coming;
    }
    // Told, then. Lists are read as a whole, and what is no stream may be empty where the set says so.
    bool refuses_empty_lists() {
        if (set_.empty) return false;
        const ListSize before{.entries = prefixes_in(live_->list(), Part::lists) +
                                         prefixes_in(ranges_->list(), Part::lists)};
        SetConfiguration lists = set_;
        lists.sources = sources_of_lists(set_);
        const auto refusal = unless_accepted(empty_list(lists), set_, TimedList(), before, state_directory_);
        if (!refusal) return false;
        live_->note_refused(Part::lists);
        tell_refusal(set_, *refusal);
        return true;
    }
    bool took_ranges(const Result<RangeSet::Change>& done) {
        if (!done) {
            tell_failure(ranges_->name(), done.error());
            return false;
        }
        tell_kept_out(ranges_->name(), done->kept_out);
        if (done->refusal) tell_refusal(ranges_->configuration(), *done->refusal);
        return !done->refusal;
    }
    bool took(Result<LiveChange> done) {
        if (!done) {
            tell_failure(set_.name, std::move(done.error()));
            return false;
        }
        tell_change(*done);
        return !done->refusal;
    }

    // --- files

    void look_at_files(Time at) {
        files_at_ = at + set_.refresh;
        accept_.clear();
        auto looked = look_at_all();
        if (looked && *looked) {
            for (WatchedList& file : files_) file.keep();
            files_in_step_ = true;
            file_failures_ = 0;
            asked_ = at;
            return;
        }
        files_in_step_ = false;
        file_failures_++;
        files_at_ =
            at + std::min<std::chrono::milliseconds>(set_.refresh, backoff_delay(file_failures_, chance()));
        if (looked) return; // a guard has told
        if (looked.error().kind == ErrorKind::changed_meanwhile) {
            woken_ = true;
            return;
        }
        if (const std::string begin = fmt::format("set {}: ", set_.name);
            !looked.error().message.starts_with(begin))
            looked.error().message = begin + looked.error().message;
        tell_failure(set_.name, std::move(looked.error()));
    }

    // False: a guard refused what the files hold.
    Result<bool> look_at_all() {
        bool whole = false;
        WatchedList::Difference difference;
        for (WatchedList& file : files_) {
            SIEVE_ASSIGN(WatchedList::Look look, file.look());
            whole = whole || look.outcome == WatchedList::Outcome::unknown;
            const auto append = [](std::vector<Prefix>& to, const std::vector<Prefix>& from) {
                to.insert(to.end(), from.begin(), from.end());
            };
            append(difference.removed, look.difference.removed);
            append(difference.added, look.difference.added);
        }
        if (whole) return read_all_files();
        if (difference.removed.empty() && difference.added.empty()) {
            live_->nothing_is_refused(Part::followed);
            return true;
        }
        std::optional<EntryChange> change = timed_entries_of(difference);
        if (!change) return read_all_files();
        return took(live_->change(Part::followed, std::move(*change)));
    }
    Result<bool> read_all_files() {
        for (WatchedList& file : files_) SIEVE_TRY(file.look(true));
        return read_whole();
    }
    // Lines with the same address are its timed entries 0, 1, and so on. Nothing: not all of them are on the
    // list.
    [[nodiscard]] std::optional<EntryChange>
    timed_entries_of(const WatchedList::Difference& difference) const {
        if (lines_left_out_) return std::nullopt;
        std::unordered_map<Prefix, std::uint64_t, PrefixHash> counts;
        const auto count_of = [&](const Prefix& prefix) -> std::uint64_t& {
            return counts.try_emplace(prefix, live_->list().count(prefix)).first->second;
        };
        EntryChange change;
        for (const Prefix& prefix : difference.removed)
            if (std::uint64_t& count = count_of(prefix); count > 0)
                change.removed.push_back({prefix, --count, never});
        for (const Prefix& prefix : difference.added) {
            if (count_of(prefix) == most_lines_of_one) return std::nullopt;
            change.added.push_back({prefix, count_of(prefix)++, never});
        }
        return change;
    }
    // In a child: what is in the files may be anything.
    Result<Feed> read_files() {
        std::vector<UniqueFd> copies;
        ReadRequest request{.set = set_.name, .feed = set_.feed, .sandbox = settings_.sandbox};
        for (const WatchedList& file : files_) {
            SIEVE_ASSIGN(UniqueFd copy, make_memory_file("sieve-watched"));
            if (!write_all(copy.get(), file.text()) || ::lseek(copy.get(), 0, SEEK_SET) != 0)
                return failure(ErrorKind::out_of_memory,
                               fmt::format("no file in memory: {}", errno_text(errno)));
            request.origins.emplace_back(OpenOrigin{copy.get(), file.path()});
            copies.push_back(std::move(copy));
        }
        auto read = read_in_sandbox(request);
        if (!read) return tl::unexpected(std::move(read.error().error));
        auto* list = std::get_if<ReadList>(&*read);
        if (list == nullptr || !list->list)
            return bad_input("found an image, expected a list, whose keys can change in place");
        for (const std::string& text : list->remarks) tell_remark(text);
        return std::move(*list->list);
    }
    Result<bool> read_whole() {
        SIEVE_ASSIGN(const Feed feed, read_files());
        if (feed.has_ranges())
            return bad_input(
                "the list has prefixes or ranges, and only single addresses change in place; expected single "
                "addresses, or a set without `kind`");
        TimedList distinct;
        std::unordered_map<Prefix, std::uint64_t, PrefixHash> repeated;
        std::vector<TimedEntry> all;
        all.reserve(feed.keys.size());
        lines_left_out_ = false;
        for (std::size_t i = 0; i < feed.keys.size(); i++) {
            const Prefix prefix{address_of_key(feed.keys.at(i), set_.feed.fields)};
            const std::uint64_t before = distinct.add({prefix, 0, never}) ? 0 : ++repeated[prefix];
            if (before < most_lines_of_one)
                all.push_back({prefix, before, never});
            else
                lines_left_out_ = true;
        }
        return took(live_->replace(Part::followed, std::move(all)));
    }

    // --- new images

    [[nodiscard]] std::unique_lock<std::mutex> alone() const {
        return settings_.exclusive != nullptr ? std::unique_lock(*settings_.exclusive)
                                              : std::unique_lock<std::mutex>();
    }
    Status publish_ranges(PutInForce put_in_force = PutInForce::here) {
        SIEVE_ASSIGN(Image image, ranges_->build(settings_.sandbox));
        const auto lock = alone();
        SIEVE_TRY(ranges_->publish(std::move(image), put_in_force));
        if (put_in_force == PutInForce::by_cycle) return {};
        image_error_.clear();
        tell({.what = LiveEvent::What::rebuilt,
              .set = ranges_->name(),
              .entries = ranges_->list().prefixes()});
        return {};
    }
    Status publish_if_due() {
        if (!can_publish() || now() < publish_at_) return {};
        Status published = publish_ranges();
        if (!published) put_off(publish_at_, ranges_->name(), published.error());
        return published;
    }
    [[nodiscard]] bool can_publish() const {
        return ranges_ && ranges_->is_due() && !live_->waits_for_cycle() &&
               !(ranges_->loses() && lacks_addresses());
    }
    // Addresses that came are not in force yet, and some may take the place of a prefix that goes.
    [[nodiscard]] bool lacks_addresses() const {
        return !delay_error_.empty() || (is_rebuild_urgent() && !live_->awaits_sources());
    }
    // The prefixes are in force, and so the addresses go whose places they take.
    void release_if_due() {
        if (!can_release() || now() < release_at_) return;
        Result<LiveChange> done = live_->release();
        if (!done) return put_off(release_at_, set_.name, std::move(done.error()));
        tell_change(*done);
    }
    [[nodiscard]] bool can_release() const {
        return live_->holds() && !ranges_->awaits_image() && !live_->waits_for_cycle();
    }
    // Whoever waits for the list of the new sources hears of it.
    void note_sources() {
        if (awaits_filter() || !delay_error_.empty() || !live_->is_of_new_sources()) return;
        const auto lock = alone();
        if (live_->note_sources()) tell({.what = LiveEvent::What::of_new_sources});
    }
    // The list of the new sources comes into force at one commit with its action, or after a while without
    // it.
    void await_cycle() {
        if (!holds_image_back()) live_->list_is_ready();
        if (wait_until_ == never) wait_until_ = now() + longest_wait;
        const bool has_come = !live_->has_other_action();
        if (!has_come && now() < wait_until_) return;
        wait_until_ = now() + retry;
        if (!took(live_->stop_waiting())) return;
        wait_until_ = never;
        if (has_come) return;
        if (ranges_) ranges_->publish_again();
        tell_remark(fmt::format(
            "set {}: its new list comes into force before its new action, which did not come within {} s",
            set_.name, longest_wait.count()));
    }
    Status finish(Result<Image> image) {
        if (image && live_->waits_for_cycle() && ranges_ && ranges_->is_due())
            if (Status published = publish_ranges(PutInForce::by_cycle); !published)
                image = tl::unexpected(std::move(published.error()));
        if (!image) {
            live_->abandon_rebuild();
            return tl::unexpected(std::move(image.error()));
        }
        const RebuildReason reason = live_->rebuild_due().value_or(RebuildReason::long_journal);
        const auto lock = alone();
        SIEVE_ASSIGN(LiveChange done, live_->finish_rebuild(std::move(*image)));
        image_error_.clear();
        if (reason == RebuildReason::in_memory && live_->is_in_memory()) home_at_ = now() + until_next_move;
        if (live_->waits_for_cycle()) {
            tell({.what = LiveEvent::What::of_new_sources});
            return {};
        }
        tell({.what = LiveEvent::What::rebuilt, .change = done, .reason = reason});
        if (reason == RebuildReason::unsaved) { // what could not be written is still to come
            files_at_ = now();
            for (PartSource& source : sources_)
                if (!source.in_step) source.schedule.restart(now());
        }
        note_filters(done);
        return {};
    }
    Status rebuild_now() {
        SIEVE_ASSIGN(RebuildOrder order, live_->begin_rebuild());
        return finish(build_live_image(std::move(order), settings_.sandbox));
    }
    // Whether an image of the list would have all that is known. Not every list may be empty.
    [[nodiscard]] bool has_list() const {
        return !live_->awaits_sources() && (!sources_.empty() || set_.empty || live_->list().prefixes() > 0);
    }
    // What waits for a cycle has one image, with what all sources have said.
    [[nodiscard]] bool holds_image_back() {
        return live_->waits_for_cycle() && !(sources_are_in_step() && live_->is_of_new_sources());
    }
    // Another thread builds, so that changes go on in place.
    void rebuild_if_due() {
        if (holds_image_back()) return;
        if (building_.is_at_work()) {
            std::optional<Result<Image>> image = building_.result();
            if (!image) return;
            if (Status done = finish(std::move(*image)); !done)
                put_off(rebuild_at_, set_.name, std::move(done.error()));
            return note_lists(); // there may not have been a record
        }
        if (!live_->rebuild_due() || now() < rebuild_at_ || !has_list()) return;
        Result<RebuildOrder> order = live_->begin_rebuild();
        if (!order) return put_off(rebuild_at_, set_.name, std::move(order.error()));
        building_.begin([this, order = std::move(*order)]() mutable {
            return build_live_image(std::move(order), settings_.sandbox);
        });
    }

    [[nodiscard]] Time next_step() {
        Time next = never;
        const auto at = [&](Time time) { next = std::min(next, time); };
        if (live_->rebuild_due() && !building_.is_at_work() && has_list() && !holds_image_back())
            at(std::max(now(), rebuild_at_));
        at(std::max(ends_at(), live_->next_expiry().value_or(never)));
        at(reconcile_at_);
        at(wait_until_);
        if (ranges_) {
            at(std::max(ends_at(), ranges_->next_expiry().value_or(never)));
            if (can_publish()) at(std::max(now(), publish_at_));
            if (can_release()) at(std::max(now(), release_at_));
        }
        for (const PartSource& source : sources_)
            if (!is_asked(source)) at(source.schedule.next_poll());
        if (!files_.empty()) at(files_at_);
        if (woken_ || filters_came_) at(now());
        return next;
    }

    LiveUpdaterSettings settings_;
    control::Kernel& kernel_;
    const StateDirectory& state_directory_;
    HostAddresses& host_;
    SetConfiguration set_;
    control::Observer observer_;
    CrowdsecSpec crowdsec_;
    OriginNames origins_;
    std::optional<BanLedger> bans_;
    std::optional<WholeLists> whole_lists_;
    std::vector<PartSource> sources_; // bans first; none: the set follows its files
    std::vector<WatchedList> files_;
    std::optional<LiveSet> live_;
    std::optional<RangeSet> ranges_;

    // The first step looks at everything.
    std::atomic<bool> woken_{true};
    std::atomic<bool> filters_came_{true};
    std::optional<Time> booted_;                    // by the clock of the last step
    bool ends_wait_ = false;                        // the clock was set: nobody knows what has ended
    std::optional<std::vector<uint128>> protected_; // the host's addresses, as the sets know them
    Time reconcile_at_ = never;
    Time wait_until_ = never;
    Time files_at_{};
    Time publish_at_{};
    Time release_at_{};
    Time rebuild_at_{};
    Time home_at_{};
    Time asked_{};
    Time asked_at_{};            // the API, last
    bool answer_is_off_ = false; // the clock was set since, so its ends are off by as much
    bool files_in_step_ = false;
    bool lines_left_out_ = false; // more lines with one address than the list takes
    std::uint64_t filters_ = 0;   // in force, that have the whole list
    bool reconciled_ = false;     // a change has looked at all filters in this step
    bool told_ignored_ = false;
    unsigned file_failures_ = 0;
    std::string told_unusable_;
    std::string last_error_;
    std::string image_error_; // why the last build or swap failed
    std::string delay_error_; // why the filters could not be had for the last change
    std::string accept_;      // Refusal::accept, of the last refusal
    std::vector<std::string> known_kept_out_;

    mutable std::mutex shown_mutex_;
    State shown_;

    Background<Result<Image>> building_{settings_.step_soon};
    Background<Answer> asking_{settings_.step_soon};
};

} // namespace

Result<std::unique_ptr<LiveUpdater>> LiveUpdater::open(LiveUpdaterSettings settings, control::Kernel& kernel,
                                                       const StateDirectory& state, HostAddresses& host) {
    const SetConfiguration* found = settings.configuration.find_set(settings.set);
    if (found == nullptr)
        return invalid_request(fmt::format("set {}: is not in the configuration", settings.set));
    const SetConfiguration set = *found;
    auto updater = std::make_unique<Updater>(std::move(settings), kernel, state, host, set);
    SIEVE_TRY(updater->start());
    return updater;
}

bool gets_first_image(const Configuration& configuration, const SetConfiguration& set) {
    return std::ranges::any_of(configuration.sets, [&](const SetConfiguration& owner) {
        return (owner.name == set.name || range_set_name(owner.name) == set.name) && follows_stream(owner) &&
               (!lets_packets_pass(configuration, owner) ||
                std::ranges::all_of(owner.sources, [](const SourceSpec& source) {
                    return std::holds_alternative<BanSpec>(source);
                }));
    });
}

Status make_first_images(const Configuration& configuration, control::Kernel& kernel,
                         const StateDirectory& state, HostAddresses& host, const SandboxSettings& sandbox) {
    const auto has_image = [&](const std::string& set) {
        return state.read(set, [](const std::string&) {}).has_value();
    };
    for (const SetConfiguration& set : configuration.sets) {
        if (!follows_stream(set)) continue;
        if (has_image(set.name) && has_image(range_set_name(set.name))) continue;
        LiveUpdaterSettings settings;
        settings.configuration = configuration;
        settings.set = set.name;
        settings.sandbox = sandbox;
        settings.needs_images = true;
        SIEVE_TRY(LiveUpdater::open(std::move(settings), kernel, state, host));
    }
    return {};
}

} // namespace sieve::service::live
