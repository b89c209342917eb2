// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/reconcile/cycle.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <ranges>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/live/live_set.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/reconcile/largest_part.hpp"
#include "libsieve/service/reconcile/list_owner.hpp"
#include "libsieve/service/reconcile/together.hpp"
#include "libsieve/service/safety/acceptance.hpp"
#include "libsieve/service/safety/entry_safety.hpp"
#include "libsieve/service/sources/origin.hpp"

namespace sieve::service {

namespace {

// A stream is followed by a live set (live/live_updater.hpp), and a range set has no source at all.
bool is_asked(const CycleOptions& options, const std::set<std::string>& sets, const SetConfiguration& set) {
    if (set.sources.empty() || follows_stream(set)) return false;
    return options.ask == Ask::all || (options.ask == Ask::some && sets.contains(set.name));
}

// Each time, a node of a fleet has come to yet another manifest while the sets' lists were read.
constexpr int most_looks = 3;

// The set as the state directory has it.
Examined remembered(const SetConfiguration& set, const StateDirectory& state,
                    const control::Observer& observer) {
    Examined examined;
    examined.before = state.read(set.name, observer.remark);
    if (!examined.before) return examined;
    examined.outdated =
        !live::is_live(set) && live::has_changed_since_image(state, set.name, *examined.before);
    examined.of_other_sources = is_of_other_sources(*examined.before, set);
    return examined;
}

// The sets that the configuration no longer has, each with the sources of its list.
std::map<std::string, std::set<std::string>> left_sets(const Configuration& configuration,
                                                       const StateDirectory& state) {
    std::map<std::string, std::set<std::string>> left;
    for (const std::string& name : state.sets()) {
        if (configuration.find_set(name) != nullptr) continue;
        if (const std::optional<SetRecord> record = state.named(name))
            left.emplace(name, identities_of(record->sources));
    }
    return left;
}

// Those whose lists have a part in that of this set, by the sources that they share; with their range sets.
std::map<std::string, std::set<std::string>>
replaced_by(const SetConfiguration& set, const std::map<std::string, std::set<std::string>>& left) {
    std::map<std::string, std::set<std::string>> replaced;
    if (left.empty()) return replaced;
    const SourceIdentities now = source_identities(set.sources);
    for (const auto& [name, sources] : left) {
        std::set<std::string> shared;
        std::ranges::copy_if(sources, std::inserter(shared, shared.end()),
                             [&](const std::string& one) { return now.may_have(one); });
        if (shared.empty()) continue;
        replaced.emplace(live::range_set_name(name), shared);
        replaced.emplace(name, std::move(shared));
    }
    return replaced;
}

// Whether what a source said is on this set's list, or will be by this cycle.
std::function<bool(const std::string& source)> answered(const SetSurvey& survey) {
    const bool is_live = live::is_live(*survey.set);
    std::set<std::string> silent;
    const bool is_read = survey.asked && survey.examined && !survey.error;
    std::vector<SourceProvenance> sources;
    if (survey.changed())
        sources = survey.examined->read->known.sources;
    else if (survey.before())
        sources = survey.before()->sources;
    // Of a live set's sources, only those beside the stream have a digest.
    if (is_live && survey.before())
        for (const SourceProvenance& one : survey.before()->beside)
            if (one.digest.empty()) silent.insert(one.source);
    const SourceIdentities now = source_identities(survey.set->sources);
    return [=](const std::string& source) {
        const auto found = std::ranges::find(sources, source, &SourceProvenance::source);
        if (found == sources.end()) return is_read || (is_live && now.needs_no_answer(source));
        return is_live ? !silent.contains(source) : !found->digest.empty();
    };
}

// Those of which a source has not answered this set yet: what it said is on their lists alone.
std::set<std::string> lacking(const SetSurvey& survey) {
    std::set<std::string> lacking;
    if (survey.replaces.empty()) return lacking;
    const auto has_answered = answered(survey);
    for (const auto& [former, shared] : survey.replaces)
        if (!std::ranges::all_of(shared, has_answered)) lacking.insert(former);
    return lacking;
}

// The sources of the set's list that it no longer has. None of a set with another action: what stays on its
// list would be judged as it never was to be.
std::set<std::string> given_up(const SetConfiguration& set, const Configuration& configuration,
                               const StateDirectory& state) {
    const std::optional<SetRecord> record = state.named(set.name);
    if (!record || record->action != action_digest(configuration, set)) return {};
    const SourceIdentities now = source_identities(set.sources);
    std::set<std::string> sources = identities_of(record->sources);
    std::erase_if(sources,
                  [&](const std::string& one) { return one == record->exceptions || now.may_have(one); });
    return sources;
}

// Where two sets are for one interface, at whichever hooks.
enum class Beside : std::uint8_t { nowhere, in_force, not_in_force };

// How the list of the other set's record stands there.
Beside list_beside(control::Kernel& kernel, const Configuration& configuration, const Pauses& pauses,
                   const std::string& set, const SetConfiguration& other,
                   const std::optional<SetRecord>& record) {
    const auto is_in_force = [&](const kernel::Interface& interface, kernel::HookPoint point) {
        const auto hook = kernel.read_hook(interface, point);
        if (!hook || !hook->ours || !hook->speaks_our_version()) return false;
        const kernel::TableInForce table = kernel.read_table(*hook);
        const kernel::SetInForce* const found = table.find(other.name);
        if (found == nullptr || !record) return false;
        const auto filter = kernel.read_filter(found->map_id);
        return live::is_live(other) || (filter && identity_text(filter->file) == record->identity);
    };
    Beside beside = Beside::nowhere;
    for (const kernel::Interface& interface : kernel.interfaces()) {
        if (pauses.has(interface.name)) continue;
        bool has_set = false;
        std::vector<kernel::HookPoint> points;
        for (const kernel::HookPoint point : kernel::all_hook_points) {
            const InterfaceConfiguration* entry = entry_for(configuration, interface.name, point);
            if (entry == nullptr) continue;
            has_set = has_set || std::ranges::count(entry->sets, set) != 0;
            if (std::ranges::count(entry->sets, other.name) != 0) points.push_back(point);
        }
        if (!has_set || points.empty()) continue;
        if (!std::ranges::all_of(points, [&](auto point) { return is_in_force(interface, point); }))
            return Beside::not_in_force;
        beside = Beside::in_force;
    }
    return beside;
}

// Those of them that another set of the same interface is to have, and has not in force yet.
MovedOrigins moved_from(control::Kernel& kernel, const SetConfiguration& set,
                        const Configuration& configuration, const StateDirectory& state) {
    MovedOrigins moved;
    const std::set<std::string> sources = given_up(set, configuration, state);
    if (sources.empty()) return moved;
    const Pauses pauses = state.pauses().value_or(Pauses());
    for (const SetConfiguration& other : configuration.sets) {
        if (other.name == set.name) continue;
        const SourceIdentities others = source_identities(other.sources);
        std::set<std::string> shared = sources;
        std::erase_if(shared, [&](const std::string& one) { return !others.known.contains(one); });
        if (shared.empty()) continue;
        const SetSurvey now{.set = &other, .asked = false, .examined = remembered(other, state, {})};
        const Beside beside = list_beside(kernel, configuration, pauses, set.name, other, now.before());
        if (beside == Beside::nowhere) continue;
        const auto has_answered = answered(now);
        for (const std::string& one : shared)
            if (beside == Beside::not_in_force || !has_answered(one)) moved.emplace(one, other.name);
    }
    return moved;
}

// Whether the list that a range set's image was built of can be read.
bool has_whole_list(const SetSurvey& survey, const StateDirectory& state) {
    live::TimedList list;
    return survey.before() &&
           live::read_timed_list(state.list_path(survey.set->name, survey.before()->identity), list);
}

// Several sets are refreshed at a time. Each takes memory, and a build has threads of its own.
constexpr std::size_t most_workers = 4;

// Calls work(i) for each i below `count`, on some threads. Throws what a call threw, when all have ended.
void for_each_at_once(std::size_t count, const std::function<void(std::size_t)>& work) {
    const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t workers = std::min({count, processors, most_workers});
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::exception_ptr thrown;
    const auto run = [&] {
        try {
            for (std::size_t i = 0; (i = next++) < count;) work(i);
        } catch (...) {
            const std::lock_guard lock(mutex);
            thrown = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i < workers; i++) others.emplace_back(run);
        run();
    }
    if (thrown) std::rethrow_exception(thrown);
}

// Keeps what is remarked on a thread, to be told in order.
class Remarks {
  public:
    explicit Remarks(std::size_t works) : texts_(works) {}
    [[nodiscard]] control::Observer observer(std::size_t work) {
        control::Observer observer;
        observer.remark = [&texts = texts_[work]](const std::string& text) { texts.push_back(text); };
        return observer;
    }
    void tell(const control::Observer& observer) const {
        for (const auto& texts : texts_)
            for (const std::string& text : texts) observer.remark(text);
    }

  private:
    std::vector<std::vector<std::string>> texts_;
};

Result<SandboxSettings> sandbox_of(const CycleOptions& options) {
    if (options.sandbox) return *options.sandbox;
    return standard_sandbox();
}

bool has_other_action(const SetSurvey& survey) {
    const std::optional<SetRecord>& before = survey.before();
    return before && !before->action.empty() && before->action != survey.action;
}

bool has_list_of_other_sources(const SetSurvey& survey) {
    return survey.owner_waits || (survey.examined && survey.examined->of_other_sources);
}

// Whether the list is one of other sources, with another action.
bool action_waits(const SetSurvey& survey) {
    return !survey.changed() && has_list_of_other_sources(survey) && has_other_action(survey);
}

SetReport report_of(const SetSurvey& survey) {
    SetReport report;
    report.name = survey.set->name;
    report.error = survey.error ? survey.error : survey.behind;
    report.action_waits = action_waits(survey) && !survey.owner_waits; // its owner's report says it
    if (survey.before()) {
        report.last_good = survey.before();
        report.entries_before = survey.before()->entries;
    }
    if (survey.refused()) {
        report.outcome = SetOutcome::refused;
        report.guard = survey.examined->refusal->guard;
        report.accept = survey.examined->refusal->accept;
    } else if (report.error) {
        report.outcome = SetOutcome::failed;
    }
    report.times.building = survey.building;
    if (survey.examined) {
        report.times.fetching = survey.examined->asking;
        if (const auto& read = survey.examined->read) {
            report.times.fetching = read->gathering;
            report.times.reading = read->reading;
        }
    }
    report.retry_after = survey.retry_after;
    return report;
}

void examine_set(SetSurvey& survey, const StateDirectory& state, const SandboxSettings& sandbox,
                 const control::Observer& observer, const std::function<bool()>& in_force,
                 const MovedOrigins& moved, bool files_only) {
    if (!survey.asked) {
        survey.examined = remembered(*survey.set, state, observer);
        return;
    }
    auto examined =
        examine(*survey.set, state, survey.protection, sandbox, observer, in_force, moved, files_only);
    if (examined) {
        survey.examined = std::move(*examined);
        if (const auto& behind = survey.examined->behind) {
            survey.behind = behind->error;
            survey.retry_after = behind->retry_after;
        }
        if (survey.examined->refusal)
            survey.error = Error{ErrorKind::bad_input, "refused: " + survey.examined->refusal->message};
        return;
    }
    // The last good image is still there for those who go on.
    survey.examined = remembered(*survey.set, state, {});
    survey.error = std::move(examined.error().error);
    survey.retry_after = examined.error().retry_after;
}

// Builds and stages the list, if it has changed and is not built yet.
void build(SetSurvey& survey, const StateDirectory& state, const SandboxSettings& sandbox,
           const control::Observer& observer) {
    if (!survey.changed() || survey.staged) return;
    const auto start = std::chrono::steady_clock::now();
    auto built = build_image(*survey.set, *survey.examined, state, survey.protection, sandbox, observer);
    survey.building =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
    if (built) {
        survey.staged = std::move(*built);
        return;
    }
    state.discard_staged(survey.set->name);
    survey.error = std::move(built.error());
}

class Cycle {
  public:
    Cycle(control::Kernel& kernel, const Configuration& configuration, const StateDirectory& state,
          HostAddresses& host, const CycleOptions& options, const control::Observer& observer,
          std::vector<SetSurvey> surveys)
        : kernel_(kernel), configuration_(configuration), state_(state), host_(host), options_(options),
          observer_(observer), surveys_(std::move(surveys)) {}

    Result<CycleReport> run() {
        if (auto managed = state_.hooks(observer_.remark)) {
            managed_ = std::move(*managed);
        } else {
            if (options_.on_failure == OnFailure::stop_all) return tl::unexpected(std::move(managed.error()));
            knows_managed_ = false;
            observer_.remark(managed.error().message + "; what it names is looked at in the next cycle");
        }
        note_refusals();
        hold_back_if_one_fails();
        if (options_.on_failure == OnFailure::stop_all) { // before minutes are spent on building
            SIEVE_ASSIGN(const ReconcilePlan plan, plan_for());
            if (std::optional<Error> error = first_failure(surveys_, plan))
                return tl::unexpected(std::move(*error));
        }
        SIEVE_TRY(build_all());
        hold_back_if_one_fails();
        SIEVE_ASSIGN(ReconcilePlan plan, plan_for());
        std::map<std::size_t, HookReport> done;
        if (Status changed = change_at_once(plan, done); !changed) {
            if (options_.on_failure == OnFailure::stop_all) {
                for (const auto& [name, record] : staged_) state_.discard_staged(name);
                return tl::unexpected(std::move(changed.error()));
            }
            SIEVE_ASSIGN(plan, plan_for());
        }
        report_.missing = plan.missing;
        for (std::size_t i = 0; i < plan.hooks.size(); i++) {
            if (const auto found = done.find(i); found != done.end())
                add_hook(std::move(found->second));
            else
                carry_out_hook(std::move(plan.hooks[i]));
        }
        let_go_what_moved();
        remember();
        tell_what_is_in_force();
        join_hooks();
        return std::move(report_);
    }

  private:
    // So that a person can accept what was refused.
    void note_refusals() {
        for (SetSurvey& survey : surveys_) {
            if (!survey.asked || !survey.examined) continue;
            const SetConfiguration& set = *survey.set;
            if (survey.refused() && survey.examined->refusal->list) {
                Refusal& refusal = *survey.examined->refusal;
                offer_acceptance(refusal, set, configuration_, state_, observer_.remark);
                survey.error->message = "refused: " + refusal.message;
            } else if ((survey.refused() || (!survey.error && !survey.behind)) &&
                       !survey.examined->accepted) {
                // A fleet's list that was refused is still wanted: its node tries it again.
                if (!survey.together || survey.changed() || !has_gone_back(state_.path()))
                    state_.forget_refused(set.name);
            }
        }
    }

    [[nodiscard]] Result<ReconcilePlan> plan_for() {
        SIEVE_ASSIGN(const Pauses pauses, state_.pauses());
        return make_plan(kernel_, configuration_, wanted_versions(surveys_), managed_, pauses);
    }

    // Sets that change together stay as they are if one of them cannot have its new list. If a failure is to
    // stop all, it does so anyway.
    void hold_back_if_one_fails() {
        if (options_.on_failure == OnFailure::stop_all) return;
        for (const SetSurvey& survey : surveys_) {
            if (!survey.together || !survey.error) continue;
            const Error cause = *survey.error;
            return hold_back("set " + survey.set->name, cause);
        }
    }

    // Gives up the new lists of the sets that change together, where there are any.
    void hold_back(const std::string& culprit, const Error& cause) {
        for (SetSurvey& survey : surveys_) {
            if (!survey.together || !survey.changed()) continue;
            survey.error = Error{
                cause.kind,
                fmt::format("waits for {}, which is to change together with it: {}", culprit, cause.message),
                cause.facts};
            if (staged_.erase(survey.set->name) != 0) state_.discard_staged(survey.set->name);
            for (SetReport& report : report_.sets) {
                if (report.name != survey.set->name) continue;
                report.outcome = SetOutcome::failed;
                report.error = survey.error;
            }
        }
    }

    // Whether a set that changes together with others comes to this hook, or gets another filter there.
    [[nodiscard]] static bool is_about(const HookPlan& hook, const std::set<std::string>& sets) {
        return hook.entry != nullptr && std::ranges::any_of(hook.entry->sets, [&](const std::string& set) {
                   return sets.contains(set);
               });
    }

    // Why these sets would not change together there: one of them has to wait, and another is in force.
    [[nodiscard]] static std::optional<Error> parts_with(const HookPlan& hook,
                                                         const std::set<std::string>& sets) {
        const auto waits = std::ranges::find_if(
            hook.waiting, [&](const WaitingSet& set) { return sets.contains(set.name); });
        const bool in_force = std::ranges::any_of(
            hook.sets, [&](const SetPlan& set) { return !set.goes && sets.contains(set.name); });
        if (waits == hook.waiting.end() || !in_force) return std::nullopt;
        return Error{ErrorKind::bad_input,
                     fmt::format("{} {}: {}", hook.interface, kernel::hook_point_name(hook.point),
                                 waiting_text(*waits)),
                     {.interface = hook.interface, .set = waits->name}};
    }

    // Carries out the plans of hooks that change at once, or none of them: of all hooks where a failure stops
    // all, else of each that has one of the sets which change together and have changed. What was done is in
    // `done`, by the hook's place in the plan. Error: one of them refuses, so nothing was changed and these
    // sets stay as they are.
    Status change_at_once(ReconcilePlan& plan, std::map<std::size_t, HookReport>& done) {
        std::set<std::string> sets;
        for (const SetSurvey& survey : surveys_)
            if (survey.together && staged_.contains(survey.set->name)) sets.insert(survey.set->name);
        const bool all = options_.on_failure == OnFailure::stop_all;
        std::vector<std::size_t> hooks;
        for (std::size_t i = 0; i < plan.hooks.size(); i++)
            if (all ? plan.hooks[i].entry != nullptr : is_about(plan.hooks[i], sets)) hooks.push_back(i);
        const auto refused = [&](const HookPlan& hook, const Error& error) -> Status {
            const Error cause = told(error, hook);
            blame(hook, cause, error.kind == ErrorKind::lockout);
            return tl::unexpected(cause);
        };
        for (const std::size_t i : hooks) {
            if (plan.hooks[i].obstacle) return refused(plan.hooks[i], *plan.hooks[i].obstacle);
            for (const auto& [set, why] : plan.hooks[i].held)
                if (all || sets.contains(set)) return refused(plan.hooks[i], why);
            if (std::optional<Error> parts = parts_with(plan.hooks[i], sets))
                return refused(plan.hooks[i], *parts);
        }
        // Attaching is what the kernel may still refuse, and it takes the longest.
        std::ranges::stable_partition(hooks,
                                      [&](std::size_t i) { return plan.hooks[i].step == HookStep::attach; });
        std::erase_if(hooks, [&](std::size_t i) { return plan.hooks[i].step == HookStep::nothing; });
        const std::map<std::string, std::string> images = identities();
        std::vector<PreparedHook> prepared;
        // What others want of the hook may be to blame: once more, without that.
        const auto again_without_others = [&](std::size_t i, const Error& error) -> Status {
            prepared.clear();
            std::optional<HookPlan> part =
                reduced_.insert(i).second ? part_of(plan.hooks[i], error) : std::nullopt;
            const bool has_all = part && std::ranges::none_of(sets, [&](const std::string& set) {
                                     return part->held.contains(set);
                                 });
            if (!has_all) return refused(plan.hooks[i], error);
            plan.hooks[i] = std::move(*part);
            return change_at_once(plan, done);
        };
        for (const std::size_t i : hooks) {
            auto one = PreparedHook::prepare(kernel_, configuration_, plan.hooks[i], images, state_,
                                             observer_, safety_for(plan.hooks[i]), options_.catch_up);
            if (!one) return again_without_others(i, one.error());
            prepared.push_back(std::move(*one));
        }
        if (prepared.empty()) return {};
        auto lock = control::hold_lock(kernel_, observer_);
        if (!lock) return refused(plan.hooks[hooks.front()], lock.error());
        for (std::size_t n = 0; n < hooks.size(); n++)
            if (Status checked = prepared[n].check(); !checked) {
                lock->reset();
                return again_without_others(hooks[n], checked.error());
            }
        for (std::size_t n = 0; n < hooks.size(); n++) {
            Result<HookDone> committed = prepared[n].commit();
            const bool stays = !committed && committed.error().kind != ErrorKind::unfinished;
            if (stays && n == 0) return refused(plan.hooks[hooks[n]], committed.error());
            settle(done[hooks[n]], committed, plan.hooks[hooks[n]]);
            if (!stays) continue;
            // Only a kernel that runs out of something comes to here. No more than has changed already.
            for (std::size_t rest = n + 1; rest < hooks.size(); rest++)
                settle(done[hooks[rest]], committed, plan.hooks[hooks[rest]]);
            break;
        }
        // What the reports say of the plan is theirs from here on: `prepared` points into the plan.
        prepared.clear();
        for (auto& [i, report] : done) report.plan = std::move(plan.hooks[i]);
        return {};
    }

    // What a person reads of a hook's refusal: of a lockout, also what to change if it is meant.
    [[nodiscard]] static Error with_advice(const Error& error, const HookPlan& hook) {
        if (error.kind != ErrorKind::lockout) return error;
        return {error.kind, "refused: " + lockout_text(error, hook.entry), error.facts};
    }
    [[nodiscard]] static Error told(const Error& error, const HookPlan& hook) {
        Error told = with_advice(error, hook);
        if (told.kind == ErrorKind::lockout) told.kind = ErrorKind::bad_input;
        return told;
    }

    // A hook has refused what changes together.
    void blame(const HookPlan& hook, const Error& cause, bool locks_out) {
        const std::string where = fmt::format("{} {}", hook.interface, kernel::hook_point_name(hook.point));
        hold_back(where, cause);
        for (SetReport& report : report_.sets) {
            const bool its = std::ranges::find(hook.entry->sets, report.name) != hook.entry->sets.end();
            const bool held_back = std::ranges::any_of(surveys_, [&](const SetSurvey& survey) {
                return survey.together && survey.error && survey.set->name == report.name;
            });
            if (!its || !held_back) continue;
            report.error = cause;
            if (!locks_out) continue;
            report.outcome = SetOutcome::refused;
            report.guard = Guard::lockout;
        }
    }

    // Builds and stages what has changed and was not built before. A failure becomes the set's, or
    // everyone's.
    Status build_all() {
        SIEVE_ASSIGN(const SandboxSettings sandbox, sandbox_of(options_));
        Remarks remarks(surveys_.size());
        for_each_at_once(surveys_.size(),
                         [&](std::size_t i) { build(surveys_[i], state_, sandbox, remarks.observer(i)); });
        remarks.tell(observer_);
        std::optional<Error> failure;
        for (SetSurvey& survey : surveys_) {
            if (survey.changed()) {
                staged_.emplace(survey.set->name, *survey.staged);
            } else if (survey.staged) { // it waits for others
                state_.discard_staged(survey.set->name);
            }
            report_.sets.push_back(report_of(survey));
            if (!failure && survey.error && !survey.refused()) failure = survey.error;
        }
        if (!failure || options_.on_failure != OnFailure::stop_all) return {};
        for (const auto& [name, record] : staged_) state_.discard_staged(name);
        return tl::unexpected(std::move(*failure));
    }

    [[nodiscard]] std::map<std::string, std::string> identities() const {
        std::map<std::string, std::string> all;
        for (const SetReport& report : report_.sets)
            if (report.last_good) all[report.name] = report.last_good->identity;
        for (const auto& [name, record] : staged_) all[name] = record.identity;
        return all;
    }

    HostAddresses& host_for(const HookPlan& plan) const {
        const bool unprotected = plan.step == HookStep::attach && options_.host_where_none_runs != nullptr;
        return unprotected ? *options_.host_where_none_runs : host_;
    }

    [[nodiscard]] control::Safety safety_for(const HookPlan& plan) const {
        return {.host = &host_for(plan), .exempt = {}, .confirm_within = options_.confirm_within};
    }

    void carry_out_hook(HookPlan plan) {
        HookReport report;
        report.plan = std::move(plan);
        report.error = report.plan.obstacle;
        if (!report.error && report.plan.step == HookStep::unload && !report.plan.paused)
            report.error = what_keeps(report.plan);
        if (!report.error && report.plan.step == HookStep::unload && !report.plan.paused && on_probation()) {
            stays_during_probation(report.plan, "the program, which is not configured any more,");
            return add_hook(std::move(report));
        }
        const bool stopped = failed_ && options_.on_failure == OnFailure::stop_all;
        if (!report.error && !stopped) {
            Result<HookDone> done = carry_out(report.plan);
            if (std::optional<HookPlan> part = done ? std::nullopt : part_of(report.plan, done.error())) {
                report.plan = std::move(*part);
                done = carry_out(report.plan);
            }
            settle(report, done, report.plan);
        }
        add_hook(std::move(report));
    }
    [[nodiscard]] Result<HookDone> carry_out(const HookPlan& plan) {
        return service::carry_out(kernel_, configuration_, plan, identities(), state_, observer_,
                                  safety_for(plan), options_.catch_up);
    }
    // What the hook takes of a plan that it refuses.
    [[nodiscard]] std::optional<HookPlan> part_of(const HookPlan& refused, const Error& why) {
        if (options_.on_failure == OnFailure::stop_all) return std::nullopt;
        const WantedVersions wanted = wanted_versions(surveys_);
        const auto plan_for = [&](const HeldBack& held) {
            return plan_hook(kernel_, configuration_, wanted, refused, held);
        };
        const auto try_out = [&](const HookPlan& plan) -> Status {
            if (plan.step == HookStep::nothing) return {};
            SIEVE_ASSIGN(PreparedHook prepared,
                         PreparedHook::prepare(kernel_, configuration_, plan, identities(), state_, observer_,
                                               safety_for(plan), options_.catch_up));
            SIEVE_ASSIGN(const control::Held lock, control::hold_lock(kernel_, observer_));
            Status taken = prepared.check();
            if (!taken) return tl::unexpected(with_advice(taken.error(), plan));
            return taken;
        };
        return largest_part(refused, with_advice(why, refused), wanted, plan_for, try_out);
    }

    // The configuration may have moved an interface's sets to another hook. Until they are in force there,
    // they stay here. Programs are unloaded after all else.
    [[nodiscard]] std::optional<Error> what_keeps(const HookPlan& unload) const {
        for (const HookReport& other : report_.hooks)
            if (other.plan.interface == unload.interface)
                if (const std::optional<Error> error = other.error ? other.error : what_waits(other, unload))
                    return Error{error->kind,
                                 fmt::format("it is unloaded once {} has what is configured there: {}",
                                             kernel::hook_point_name(other.plan.point), error->message)};
        return std::nullopt;
    }

    // A set that is in force here, and waits there, or is replaced by one there that waits or has not its
    // list; or the default of drop waits there, and what is dropped here would pass until then.
    [[nodiscard]] std::optional<Error> what_waits(const HookReport& other, const HookPlan& unload) const {
        if (other.plan.holds_table()) return other.plan.held.at(std::string());
        const std::vector<std::string> there = other.plan.names();
        const bool drops_more =
            unload.default_before || std::ranges::any_of(unload.sets, [&](const SetPlan& set) {
                return std::ranges::find(there, set.name) == there.end();
            });
        if (other.plan.default_waits() && drops_more)
            return Error{
                ErrorKind::bad_input, "the default is pass until the sets that pass have their lists", {}};
        for (const SetPlan& set : unload.sets)
            for (const WaitingSet& waits : other.plan.waiting)
                if (waits.name == set.name || replaces(waits.name, set.name))
                    return Error{ErrorKind::bad_input, waiting_text(waits), {}};
        for (const SetSurvey& survey : surveys_)
            if (std::ranges::find(there, survey.set->name) != there.end())
                for (const std::string& former : lacking(survey))
                    if (std::ranges::find(unload.sets, former, &SetPlan::name) != unload.sets.end())
                        return Error{ErrorKind::bad_input,
                                     fmt::format("set {} has not heard all sources of set {}",
                                                 survey.set->name, former),
                                     {}};
        return std::nullopt;
    }
    [[nodiscard]] bool replaces(const std::string& set, const std::string& former) const {
        return std::ranges::any_of(surveys_, [&](const SetSurvey& survey) {
            return survey.set->name == set && survey.replaces.contains(former);
        });
    }

    // What became of a hook whose plan was carried out.
    void settle(HookReport& report, const Result<HookDone>& done, const HookPlan& plan) {
        if (done) {
            report.done = *done;
            report.carried_out = true;
            if (plan.step != HookStep::nothing) report_.changed = true;
            note_live(report);
            return;
        }
        report.error = told(done.error(), plan);
        report.locks_out = done.error().kind == ErrorKind::lockout;
        failed_ = true;
    }

    [[nodiscard]] bool on_probation() const { return options_.confirm_within.count() != 0; }
    // Whoever takes the change back would find it missing.
    void stays_during_probation(const HookPlan& plan, const std::string& what) const {
        observer_.remark(
            fmt::format("{} {}: {} stays until a change without probation, since this one may be taken back",
                        plan.interface, kernel::hook_point_name(plan.point), what));
    }
    // What another hook has by now goes where it was.
    void let_go_what_moved() {
        if (std::ranges::none_of(report_.hooks, [](const HookReport& one) { return one.plan.moves(); }))
            return;
        WantedVersions wanted = wanted_versions(surveys_);
        for (const auto& [name, record] : staged_) { // it came into force, or does not now
            wanted[name].filter = WantedFilter::in_force;
            wanted[name].identity = record.identity;
        }
        for (HookReport& report : report_.hooks) {
            if (report.error || !report.plan.moves()) continue;
            if (on_probation()) {
                stays_during_probation(report.plan, "what moves to another hook");
                continue;
            }
            const HookPlan rest = plan_hook(kernel_, configuration_, wanted, report.plan, report.plan.held);
            if (rest.obstacle || rest.step == HookStep::nothing) continue;
            std::set<std::string> gone;
            for (const SetPlan& set : rest.sets)
                if (set.goes) gone.insert(set.name);
            const HookDone before = std::exchange(report.done, {});
            settle(report, carry_out(rest), rest);
            if (report.error) {
                report.done = before;
                continue;
            }
            report.plan.let_go_what_moves(&gone, !rest.default_moves);
            report.done.remarks.insert(report.done.remarks.begin(), before.remarks.begin(),
                                       before.remarks.end());
            report.done.brought_in.insert(report.done.brought_in.begin(), before.brought_in.begin(),
                                          before.brought_in.end());
        }
    }

    void add_hook(HookReport report) {
        note_managed(report);
        report_.hooks.push_back(std::move(report));
    }

    // The tables are in force already, so a failure changes no verdict: the sets are asked one by one.
    void join_hooks() {
        if (on_probation()) return; // nothing else can change then
        for (const HookReport& hook : report_.hooks) {
            if (!hook.carried_out) continue;
            const Result<SandboxSettings> sandbox = sandbox_of(options_);
            const auto joined = sandbox ? join_sets(kernel_, configuration_, hook.plan, state_, *sandbox,
                                                    observer_, {.host = &host_for(hook.plan)})
                                        : tl::unexpected(sandbox.error());
            const std::string where =
                fmt::format("{} {}", hook.plan.interface, kernel::hook_point_name(hook.plan.point));
            if (!joined) {
                observer_.remark(
                    fmt::format("{}: the sets are asked one by one, since joining them failed: {}", where,
                                joined.error().message));
            } else if (*joined && (*joined)->joined) {
                report_.changed = true;
                observer_.remark(fmt::format("{}: one lookup answers for {}", where,
                                             fmt::join((*joined)->joined->sets, ", ")));
            }
        }
    }

    void note_live(const HookReport& report) {
        live_.insert(report.done.brought_in.begin(), report.done.brought_in.end());
        for (SetReport& set : report_.sets)
            if (std::find(report.done.brought_in.begin(), report.done.brought_in.end(), set.name) !=
                report.done.brought_in.end()) {
                set.times.testing += report.done.testing;
                set.times.swapping += report.done.swapping;
            }
    }

    // What failed stays as it was, and ours if it was ours.
    void note_managed(const HookReport& report) {
        const HookPlan& plan = report.plan;
        const std::uint32_t id = report.program_id();
        if (id != 0) now_managed_.push_back({plan.interface, plan.point, id});
        if (report.carried_out && plan.step == HookStep::unload) unloaded_.insert(plan.program_id);
    }

    // A program that may still be somewhere is ours to take away: the kernel may not have told where it is,
    // or its interface is in another network namespace.
    void keep_noting_managed() {
        for (const ManagedHook& before : managed_) {
            if (unloaded_.contains(before.program_id)) continue;
            if (std::ranges::any_of(now_managed_, [&](const ManagedHook& now) {
                    return now.program_id == before.program_id;
                }))
                continue;
            if (!kernel_.has_program(before.program_id).value_or(true)) continue;
            now_managed_.push_back(before);
            const bool is_named = entry_for(configuration_, before.interface, before.point) != nullptr;
            report_.away.push_back({.noted = before, .left = !is_named});
        }
    }

    // Whether each hook of the set has its filter, and under its name.
    [[nodiscard]] bool is_its_own(const std::string& set) const {
        return report_.away.empty() && is_planned(set) &&
               std::ranges::none_of(report_.hooks, [&](const HookReport& hook) {
                   return is_about(hook.plan, {set}) &&
                          (hook.error || hook.plan.held.contains(set) || hook.plan.waits(set));
               });
    }

    // What cannot be written keeps nothing else from being written.
    void remember() {
        keep_noting_managed();
        const auto note = [&](const Status& written) {
            if (written) return;
            if (report_.unwritten)
                observer_.remark(written.error().message);
            else
                report_.unwritten = written.error();
        };
        std::map<std::string, SetRecord> together;
        for (std::size_t i = 0; i < surveys_.size(); i++)
            note(remember_set(surveys_[i], report_.sets[i], together));
        const Status committed = state_.commit(together);
        note(committed);
        if (committed)
            for (const auto& [set, record] : together) end_acceptance(set, record);
        if (knows_managed_) note(state_.keep_hooks(now_managed_));
        // What goes may be all that is kept of a set that replaces it.
        if (!report_.unwritten) forget_others();
    }

    // A new image is the last good one once it is live somewhere, or if there is no interface for it. The
    // record of a set that changes together with others is added to theirs.
    Status remember_set(const SetSurvey& survey, SetReport& report,
                        std::map<std::string, SetRecord>& together) {
        const auto staged = staged_.find(report.name);
        if (staged == staged_.end()) {
            const bool other_action =
                report.last_good && !survey.owner_waits && note_action(report.name, *report.last_good);
            const bool confirmed = survey.examined && survey.examined->provenance_changed;
            const bool settled =
                report.last_good && !report.last_good->former.empty() && is_its_own(report.name);
            if (settled) report.last_good->former.clear();
            if (report.last_good && (other_action || confirmed || settled))
                return state_.commit(report.name, *report.last_good);
            return {};
        }
        staged->second.action = survey.action;
        if (survey.before() && !is_its_own(report.name)) staged->second.former = survey.before()->former;
        if (!live_.contains(report.name) && is_planned(report.name)) {
            state_.discard_staged(report.name);
            blame_hooks(report);
            return {};
        }
        report.renewed = true;
        if (!survey.behind) report.outcome = SetOutcome::replaced;
        report.last_good = std::move(staged->second);
        if (survey.together) {
            together.emplace(report.name, *report.last_good);
            return {};
        }
        SIEVE_TRY(state_.commit(report.name, *report.last_good));
        end_acceptance(report.name, *report.last_good);
        return {};
    }
    void end_acceptance(const std::string& set, const SetRecord& record) const {
        if (!record.accepted.empty()) state_.forget_refused(set);
    }

    // Removes what is kept of sets that neither are configured nor stay.
    void forget_others() const {
        std::vector<std::string> names;
        for (const SetConfiguration& set : configuration_.sets) names.push_back(set.name);
        for (const HookReport& hook : report_.hooks) // a set that stays for one that replaces it
            for (const std::string& set : hook.plan.names()) names.push_back(set);
        if (std::ranges::any_of(report_.hooks,
                                [](const HookReport& hook) { return hook.error.has_value(); }) ||
            !report_.missing.empty()) // or may stay there
            for (const SetSurvey& survey : surveys_)
                std::ranges::copy(std::views::keys(survey.replaces), std::back_inserter(names));
        state_.forget_all_but(names);
    }

    // A change that was taken back, or a person, may have put another list in force than the last good one.
    // The lists of sets that change in place tell of themselves.
    void tell_what_is_in_force() {
        for (std::size_t i = 0; i < surveys_.size(); i++) {
            SetReport& set = report_.sets[i];
            if (!set.last_good || live::is_live(*surveys_[i].set) ||
                live::is_range_set(configuration_, set.name))
                continue;
            std::optional<sieve_file> other;
            const bool is_there = std::ranges::any_of(report_.hooks, [&](const HookReport& hook) {
                const std::optional<sieve_file> filter = filter_of(hook, set.name);
                const bool same = filter && identity_text(*filter) == set.last_good->identity;
                if (filter && !same) other = filter;
                return same || std::ranges::count(hook.done.brought_in, set.name) != 0;
            });
            if (other && !is_there) set.last_good = as_in_force(*set.last_good, *other);
        }
    }
    // Nothing: the hook has none, or has just got one.
    [[nodiscard]] std::optional<sieve_file> filter_of(const HookReport& hook, const std::string& set) const {
        const auto found = std::ranges::find(hook.plan.sets, set, &SetPlan::name);
        if (found == hook.plan.sets.end() || !found->kept) return std::nullopt;
        const Result<kernel::FilterHeader> filter = kernel_.read_filter(found->kept->map_id);
        return filter ? std::optional(filter->file) : std::nullopt;
    }
    [[nodiscard]] static SetRecord as_in_force(SetRecord record, const sieve_file& file) {
        record.identity = identity_text(file);
        record.entries = file.entries;
        record.keys = file.keys;
        record.skipped = file.skipped;
        record.bytes = file.lines * sizeof(sieve_line);
        record.expected_fpr = rate_from_bits(file.expected_fpr);
        record.built_at = static_cast<std::int64_t>(file.built_at);
        record.left_out.clear();
        record.sources.clear(); // nobody knows when they were asked
        return record;
    }

    // Whether the record gets another action. One of the list of other sources keeps its own.
    [[nodiscard]] bool note_action(const std::string& name, SetRecord& record) const {
        const SetConfiguration& set = *configuration_.find_set(name);
        std::string now = action_digest(configuration_, set);
        if (record.action == now || is_of_other_sources(record, set)) return false;
        record.action = std::move(now);
        return true;
    }

    // Not if it waits for another set.
    static bool has(const HookReport& hook, const std::string& set) {
        return is_about(hook.plan, {set}) && (hook.plan.held.contains(set) || !hook.plan.waits(set));
    }
    [[nodiscard]] bool is_planned(const std::string& set) const {
        return std::any_of(report_.hooks.begin(), report_.hooks.end(),
                           [&](const HookReport& hook) { return has(hook, set); });
    }
    // Why a set that was built could go live nowhere.
    void blame_hooks(SetReport& set) const {
        set.outcome = SetOutcome::failed;
        for (const HookReport& hook : report_.hooks) {
            if (!has(hook, set.name)) continue;
            const auto held = hook.plan.held.find(set.name);
            if (held == hook.plan.held.end() && !hook.error) continue;
            set.error = held != hook.plan.held.end() ? held->second : hook.error;
            if (!hook.locks_out && set.error->kind != ErrorKind::lockout) return;
            set.outcome = SetOutcome::refused;
            set.guard = Guard::lockout;
            return;
        }
    }

    control::Kernel& kernel_;
    const Configuration& configuration_;
    const StateDirectory& state_;
    HostAddresses& host_;
    const CycleOptions& options_;
    const control::Observer& observer_;
    std::vector<SetSurvey> surveys_;
    std::vector<ManagedHook> managed_;
    bool knows_managed_ = true;
    std::vector<ManagedHook> now_managed_;
    std::set<std::uint32_t> unloaded_; // programs
    std::map<std::string, SetRecord> staged_;
    std::set<std::string> live_;    // sets whose image was brought into force
    std::set<std::size_t> reduced_; // hooks of the plan of change_at_once() that do without what others want
    bool failed_ = false;
    CycleReport report_; // its sets in the order of the surveys
};

} // namespace

const std::optional<SetRecord>& SetSurvey::before() const {
    static const std::optional<SetRecord> none;
    return examined ? examined->before : none;
}

namespace {

// A live set whose record has the list of its new sources, and not their action yet: what is in force may be
// the list before (LiveSet::wait_for_cycle()). Its range set goes with it.
void survey_live_sets(std::vector<SetSurvey>& surveys) {
    for (SetSurvey& survey : surveys) {
        if (survey.set == nullptr || !live::is_live(*survey.set)) continue;
        const bool waits = has_list_of_other_sources(survey);
        survey.not_its_own = survey.not_its_own || (!waits && has_other_action(survey));
        for (SetSurvey& ranges : surveys) {
            if (ranges.set == nullptr || !ranges.set->sources.empty() ||
                ranges.set->name != live::range_set_name(survey.set->name))
                continue;
            ranges.owner_waits = waits;
            ranges.not_its_own = ranges.not_its_own || survey.not_its_own;
        }
    }
}

// Surveys every set, or these only. Sets that change together are read as of one moment. Without a kernel,
// each of them may be in force.
std::vector<SetSurvey> survey(control::Kernel* kernel, const Configuration& configuration,
                              const std::set<std::string>* only, const std::vector<HostAddress>& addresses,
                              const StateDirectory& state, const CycleOptions& options,
                              const SandboxSettings& sandbox, const control::Observer& observer) {
    std::vector<SetSurvey> surveys(configuration.sets.size());
    const std::map<std::string, std::set<std::string>> left = left_sets(configuration, state);
    const auto survey_those = [&](const SetsTogether& together, const auto& concerned) {
        Remarks remarks(surveys.size());
        const std::set<std::string> asked = together.completed(options.sets);
        for_each_at_once(surveys.size(), [&](std::size_t i) {
            const SetConfiguration& set = configuration.sets[i];
            if (!concerned(set.name)) return;
            SetSurvey& survey = surveys[i];
            const bool is_first_look = survey.set == nullptr;
            if (const auto ready = options.surveyed.find(set.name);
                is_first_look && ready != options.surveyed.end()) {
                survey = std::move(*ready->second);
            } else {
                survey = {.set = &set,
                          .asked = is_asked(options, asked, set),
                          .together = together.has(set.name),
                          .protection = protection_of(configuration, set, addresses)};
                const auto in_force = [&] {
                    return kernel == nullptr || live::something_is_in_force(*kernel, configuration, set.name);
                };
                // Without a kernel, all sets change at once, or none.
                MovedOrigins moved;
                if (kernel != nullptr && survey.asked) moved = moved_from(*kernel, set, configuration, state);
                examine_set(survey, state, sandbox, remarks.observer(i), in_force, moved, options.files_only);
            }
            survey.replaces = replaced_by(set, left);
            survey.not_its_own = survey.before() && !survey.before()->former.empty();
            if (survey.before())
                for (const std::string& former : survey.before()->former)
                    for (const std::string& name : {former, live::range_set_name(former)})
                        survey.replaces.emplace(name, std::set<std::string>());
            survey.goes_by_record = set.sources.empty() && has_whole_list(survey, state);
            survey.action = action_digest(configuration, set);
        });
        remarks.tell(observer);
    };
    SetsTogether together = SetsTogether::of(configuration);
    survey_those(together, [&](const std::string& set) { return only == nullptr || only->contains(set); });
    for (int looks = 1; options.ask != Ask::nothing && !together.still(); looks++) {
        const SetsTogether before = std::exchange(together, SetsTogether::of(configuration));
        const bool lacks_some = only != nullptr && together.completed(*only) != *only;
        if (looks == most_looks || lacks_some) {
            for (SetSurvey& one : surveys)
                if (one.together && one.asked)
                    one.error = Error{ErrorKind::bad_input, "another manifest came while it was read"};
            break;
        }
        survey_those(together, [&](const std::string& set) {
            return (before.has(set) || together.has(set)) && (only == nullptr || only->contains(set));
        });
    }
    survey_live_sets(surveys);
    return surveys;
}

} // namespace

std::vector<SetSurvey> refresh_sets(control::Kernel& kernel, const Configuration& configuration,
                                    const std::set<std::string>& names, const StateDirectory& state,
                                    HostAddresses& host, const SandboxSettings& sandbox,
                                    const control::Observer& observer, bool files_only) {
    const Result<std::vector<HostAddress>> addresses = host.read();
    const CycleOptions options{
        .ask = addresses ? Ask::some : Ask::nothing, .sets = names, .files_only = files_only};
    std::vector<SetSurvey> surveys =
        survey(&kernel, configuration, &names, addresses.value_or(std::vector<HostAddress>()), state, options,
               sandbox, observer);
    std::erase_if(surveys, [](const SetSurvey& one) { return one.set == nullptr; });
    if (!addresses)
        for (SetSurvey& one : surveys) {
            one.asked = true;
            one.error = addresses.error();
        }
    // Of those that change together, none has use for its image if one fails.
    const bool some_fails =
        std::ranges::any_of(surveys, [](const SetSurvey& one) { return one.together && one.error; });
    Remarks remarks(surveys.size());
    for_each_at_once(surveys.size(), [&](std::size_t i) {
        if (!surveys[i].together || !some_fails) build(surveys[i], state, sandbox, remarks.observer(i));
    });
    remarks.tell(observer);
    return surveys;
}

Result<std::vector<SetSurvey>> survey_sets(const Configuration& configuration, const StateDirectory& state,
                                           HostAddresses& host, const CycleOptions& options,
                                           const control::Observer& observer) {
    std::vector<HostAddress> addresses;
    if (options.ask != Ask::nothing) {
        SIEVE_ASSIGN(addresses, host.read());
    }
    SIEVE_ASSIGN(const SandboxSettings sandbox, sandbox_of(options));
    return survey(nullptr, configuration, nullptr, addresses, state, options, sandbox, observer);
}

WantedVersions wanted_versions(const std::vector<SetSurvey>& surveys) {
    WantedVersions wanted;
    for (const SetSurvey& survey : surveys) {
        WantedVersion& set = wanted[survey.set->name];
        set.together = survey.together;
        std::ranges::copy(std::views::keys(survey.replaces), std::inserter(set.replaces, set.replaces.end()));
        set.lacks = lacking(survey);
        if (survey.changed()) {
            set.filter = WantedFilter::new_build;
            set.verifiable = !leads_to_exact(survey.set->feed, *survey.examined->read);
            continue;
        }
        if (survey.before() && !survey.examined->outdated) {
            set.identity = survey.before()->identity;
            set.verifiable = survey.before()->exact;
            set.earlier = survey.before()->earlier;
        }
        // What runs may be newer than the record: a controller may have died before it wrote that.
        const bool by_record = survey.not_its_own || survey.goes_by_record;
        if (!survey.asked || survey.error) {
            set.filter = by_record && set.has_image() ? WantedFilter::last_good : WantedFilter::in_force;
            set.of_other_sources = has_list_of_other_sources(survey);
            set.action_waits = action_waits(survey);
        } else if (survey.before()) {
            set.filter = WantedFilter::last_good;
        }
    }
    return wanted;
}

std::optional<Error> first_failure(const std::vector<SetSurvey>& surveys, const ReconcilePlan& plan) {
    for (const SetSurvey& survey : surveys)
        if (survey.error || survey.behind) return survey.error ? survey.error : survey.behind;
    if (!plan.missing.empty())
        return Error{ErrorKind::kernel_refused,
                     fmt::format("interface {}: there is none of that name", plan.missing.front()),
                     {.interface = plan.missing.front()}};
    for (const HookPlan& hook : plan.hooks) {
        if (hook.obstacle) return hook.obstacle;
        if (!hook.held.empty()) return hook.held.begin()->second;
        if (hook.otherwise) return hook.otherwise;
    }
    return std::nullopt;
}

Result<CycleReport> run_cycle(control::Kernel& kernel, const Configuration& configuration,
                              const StateDirectory& state, HostAddresses& host, const CycleOptions& options,
                              const control::Observer& observer) {
    SIEVE_ASSIGN(std::vector<SetSurvey> surveys, survey_sets(configuration, state, host, options, observer));
    return Cycle(kernel, configuration, state, host, options, observer, std::move(surveys)).run();
}

} // namespace sieve::service
