// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/cycle.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

namespace sieve::service {

namespace {

// A stream is followed by a live set (live/live_keeper.hpp), and a companion has no source at all.
bool is_asked(const CycleOptions& options, const SetConfiguration& set) {
    if (set.sources.empty() || followed_stream(set) != nullptr) return false;
    return options.ask == Ask::all || (options.ask == Ask::some && options.sets.contains(set.name));
}

// The set as the state directory has it.
Examined remembered(const SetConfiguration& set, const StateDirectory& state,
                    const control::Observer& observer) {
    Examined examined;
    examined.before = state.read(set.name, observer.remark);
    return examined;
}

SetReport report_of(const SetSurvey& survey) {
    SetReport report;
    report.name = survey.set->name;
    report.error = survey.error;
    if (survey.before()) {
        report.last_good = survey.before();
        report.entries_before = survey.before()->entries;
    }
    if (survey.refused()) {
        report.outcome = SetOutcome::refused;
        report.guard = survey.examined->refusal->guard;
    } else if (survey.error) {
        report.outcome = SetOutcome::failed;
    }
    return report;
}

class Cycle {
  public:
    Cycle(control::Kernel& kernel, const Configuration& configuration, const StateDirectory& state,
          const CycleOptions& options, const control::Observer& observer)
        : kernel_(kernel), configuration_(configuration), state_(state), options_(options),
          observer_(observer) {}

    Result<CycleReport> run(std::vector<SetSurvey> surveys) {
        managed_ = state_.hooks();
        {
            // Before minutes are spent on building.
            const Plan plan = make_plan(kernel_, configuration_, wanted_sets(surveys), managed_);
            if (options_.failing == Failing::stops_all)
                if (std::optional<Error> error = first_failure(surveys, plan))
                    return tl::unexpected(std::move(*error));
        }
        for (SetSurvey& survey : surveys) {
            SetReport report = report_of(survey);
            if (survey.changed()) SIEVE_TRY(build(survey, report));
            report_.sets.push_back(std::move(report));
        }
        Plan plan = make_plan(kernel_, configuration_, wanted_sets(surveys), managed_);
        report_.missing = plan.missing;
        for (HookPlan& hook : plan.hooks) carry_out_hook(std::move(hook));
        SIEVE_TRY(remember());
        return std::move(report_);
    }

  private:
    // Builds and stages. A failure becomes the set's, or everyone's.
    Status build(SetSurvey& survey, SetReport& report) {
        Result<SetRecord> built =
            build_image(*survey.set, std::move(*survey.examined), state_, survey.protection, observer_);
        survey.examined->before = report.last_good;
        if (built) {
            staged_.emplace(survey.set->name, std::move(*built));
            survey.examined->list.emplace(survey.set->feed.fields); // it has changed, and is built
            return {};
        }
        state_.discard_staged(survey.set->name);
        if (options_.failing == Failing::stops_all) {
            for (const auto& [name, record] : staged_) state_.discard_staged(name);
            Error error = std::move(built.error());
            error.message = fmt::format("set {}: {}", survey.set->name, error.message);
            return tl::unexpected(std::move(error));
        }
        report.outcome = SetOutcome::failed;
        report.error = built.error();
        survey.error = std::move(built.error());
        survey.examined->list.reset();
        return {};
    }

    [[nodiscard]] std::map<std::string, std::string> identities() const {
        std::map<std::string, std::string> all;
        for (const SetReport& report : report_.sets)
            if (report.last_good) all[report.name] = report.last_good->identity;
        for (const auto& [name, record] : staged_) all[name] = record.identity;
        return all;
    }

    void carry_out_hook(HookPlan plan) {
        HookReport report;
        report.plan = std::move(plan);
        report.error = report.plan.obstacle;
        const bool stopped = failed_ && options_.failing == Failing::stops_all;
        if (!report.error && !stopped) {
            auto done = carry_out(kernel_, configuration_, report.plan, identities(), state_, observer_);
            if (done) {
                report.done = std::move(*done);
                report.carried_out = true;
                if (report.plan.step != HookStep::nothing) report_.changed = true;
                note_live(report);
            } else {
                report.error = std::move(done.error());
                failed_ = true;
            }
        }
        note_managed(report);
        report_.hooks.push_back(std::move(report));
    }

    void note_live(const HookReport& report) {
        live_.insert(report.done.brought_in.begin(), report.done.brought_in.end());
    }

    // What failed stays as it was, and ours if it was ours.
    void note_managed(const HookReport& report) {
        const HookPlan& plan = report.plan;
        const std::uint32_t id = report.carried_out ? report.done.program_id : plan.program_id;
        if (id != 0) now_managed_.push_back({plan.interface, plan.point, id});
    }

    // A new image is the last good one once it is live somewhere, or if there is no interface for it.
    Status remember() {
        for (SetReport& report : report_.sets) {
            const auto staged = staged_.find(report.name);
            if (staged == staged_.end()) continue;
            if (live_.contains(report.name) || !is_planned(report.name)) {
                SIEVE_TRY(state_.commit(report.name, staged->second));
                report.outcome = SetOutcome::replaced;
                report.last_good = std::move(staged->second);
            } else {
                state_.discard_staged(report.name);
                report.outcome = SetOutcome::failed;
                report.error = error_of_hooks(report.name);
            }
        }
        if (now_managed_ != managed_) SIEVE_TRY(state_.keep_hooks(now_managed_));
        std::vector<std::string> names;
        for (const SetConfiguration& set : configuration_.sets) names.push_back(set.name);
        state_.forget_all_but(names);
        return {};
    }

    static bool has(const HookReport& hook, const std::string& set) {
        return hook.plan.entry != nullptr &&
               std::find(hook.plan.entry->sets.begin(), hook.plan.entry->sets.end(), set) !=
                   hook.plan.entry->sets.end();
    }
    [[nodiscard]] bool is_planned(const std::string& set) const {
        return std::any_of(report_.hooks.begin(), report_.hooks.end(),
                           [&](const HookReport& hook) { return has(hook, set); });
    }
    // Why a set that was built could go live nowhere.
    [[nodiscard]] std::optional<Error> error_of_hooks(const std::string& set) const {
        for (const HookReport& hook : report_.hooks)
            if (has(hook, set) && hook.error) return hook.error;
        return std::nullopt;
    }

    control::Kernel& kernel_;
    const Configuration& configuration_;
    const StateDirectory& state_;
    const CycleOptions& options_;
    const control::Observer& observer_;
    std::vector<ManagedHook> managed_;
    std::vector<ManagedHook> now_managed_;
    std::map<std::string, SetRecord> staged_;
    std::set<std::string> live_; // sets whose image was brought into force
    bool failed_ = false;
    CycleReport report_;
};

} // namespace

const std::optional<SetRecord>& SetSurvey::before() const {
    static const std::optional<SetRecord> none;
    return examined ? examined->before : none;
}

Result<std::vector<SetSurvey>> survey_sets(const Configuration& configuration, const StateDirectory& state,
                                           HostAddresses& host, const CycleOptions& options,
                                           const control::Observer& observer) {
    std::vector<HostAddress> addresses;
    if (options.ask != Ask::nothing) {
        SIEVE_ASSIGN(addresses, host.read());
    }
    std::vector<SetSurvey> surveys;
    for (const SetConfiguration& set : configuration.sets) {
        SetSurvey survey{.set = &set};
        survey.protection.takes_packets = takes_packets(configuration, set);
        survey.protection.host = addresses;
        if (!is_asked(options, set)) {
            survey.asked = false;
            survey.examined = remembered(set, state, observer);
            surveys.push_back(std::move(survey));
            continue;
        }
        Result<Examined> examined = examine(set, state, survey.protection, observer);
        if (examined) {
            survey.examined = std::move(*examined);
            if (survey.examined->refusal)
                survey.error = Error{ErrorKind::bad_input, "refused: " + survey.examined->refusal->message};
        } else {
            // The last good image is still there for those who go on.
            survey.examined = remembered(set, state, [&] {
                control::Observer quiet = observer;
                quiet.remark = [](const std::string&) {};
                return quiet;
            }());
            survey.error = std::move(examined.error());
            survey.error->message = fmt::format("set {}: {}", set.name, survey.error->message);
        }
        surveys.push_back(std::move(survey));
    }
    return surveys;
}

WantedSets wanted_sets(const std::vector<SetSurvey>& surveys) {
    WantedSets wanted;
    for (const SetSurvey& survey : surveys) {
        WantedSet& set = wanted[survey.set->name];
        if (survey.changed()) {
            set.filter = WantedFilter::new_build;
            continue;
        }
        if (survey.before()) set.identity = survey.before()->identity;
        // What runs is as new as the record, or newer: a controller may have died before it wrote that.
        if (!survey.asked || survey.error)
            set.filter = WantedFilter::in_force;
        else if (survey.before())
            set.filter = WantedFilter::last_good;
    }
    return wanted;
}

std::optional<Error> first_failure(const std::vector<SetSurvey>& surveys, const Plan& plan) {
    for (const SetSurvey& survey : surveys)
        if (survey.error) return survey.error;
    if (!plan.missing.empty())
        return Error{ErrorKind::kernel_refused,
                     fmt::format("interface {}: there is none of that name", plan.missing.front()),
                     {.interface = plan.missing.front()}};
    for (const HookPlan& hook : plan.hooks)
        if (hook.obstacle) return hook.obstacle;
    return std::nullopt;
}

Result<CycleReport> run_cycle(control::Kernel& kernel, const Configuration& configuration,
                              const StateDirectory& state, HostAddresses& host, const CycleOptions& options,
                              const control::Observer& observer) {
    SIEVE_ASSIGN(std::vector<SetSurvey> surveys, survey_sets(configuration, state, host, options, observer));
    return Cycle(kernel, configuration, state, options, observer).run(std::move(surveys));
}

} // namespace sieve::service
