// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve apply: makes the host match a configuration, once. A second run has nothing to do.
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/console/remedy.hpp"
#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/service/config/configuration_reader.hpp"
#include "libsieve/service/config/values/configuration_secrets.hpp"
#include "libsieve/service/contact/manager.hpp"
#include "libsieve/service/lists/list_change.hpp"
#include "libsieve/service/live/live_set.hpp"
#include "libsieve/service/live/live_updater.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/reconcile/list_owner.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"
#include "xdp-sieve/arguments/safety_arguments.hpp"
#include "xdp-sieve/reports/apply_report.hpp"

namespace sieve::cli {

namespace {

struct ApplyArguments {
    std::string path = service::standard_configuration;
    std::string named{}; // the same with --config
    bool check = false;
    bool diff = false;
    bool force = false;
    SafetyArguments safety;
};

std::uint64_t entries_of(const service::SetSurvey& survey) {
    if (survey.changed()) return survey.examined->entries();
    return survey.before() ? survey.before()->entries : 0;
}

Result<std::vector<service::SetSurvey>> survey(const service::Configuration& configuration,
                                               const service::StateDirectory& state, Context& context) {
    service::RealHostAddresses host({}, {}, observer(context).remark);
    return service::survey_sets(configuration, state, host, {}, observer(context));
}

// The lists that a set has beside a stream can be read without it. How many entries there were with the
// stream says nothing of them.
service::Configuration without_streams_beside_lists(service::Configuration configuration) {
    for (service::SetConfiguration& set : configuration.sets) {
        std::vector<service::SourceSpec> lists = service::sources_of_lists(set);
        if (!service::follows_stream(set) || lists.empty()) continue;
        set.sources = std::move(lists);
        set.feed.build = control::FeedSpec().build;
        set.guards.most_growth = std::numeric_limits<double>::infinity();
        set.guards.most_shrink = 1;
    }
    return configuration;
}

// Reads everything that there is to read, and changes nothing.
Result<Exit> run_check(const ApplyArguments& arguments, const service::Configuration& configuration,
                       Context& context) {
    const service::StateDirectory state = service::StateDirectory::look(
        configuration.state_directory, service::standard_spare(configuration.state_directory));
    SIEVE_ASSIGN(const std::vector<service::SetSurvey> surveys, survey(configuration, state, context));
    if (const std::optional<Error> error = service::first_failure(surveys, {})) return tl::unexpected(*error);
    if (context.json) {
        nlohmann::json out = {{"configuration", arguments.path},
                              {"interfaces", configuration.interfaces.size()},
                              {"sets", nlohmann::json::array()}};
        for (const service::SetSurvey& set : surveys)
            out["sets"].push_back({{"name", set.set->name}, {"entries", entries_of(set)}});
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        print_out(
            "{} is correct: {}, {}\n", arguments.path,
            format_counted(configuration.interfaces.size(), "entry for interfaces", "entries for interfaces"),
            format_counted(surveys.size(), "set"));
        for (const service::SetSurvey& set : surveys)
            print_out("  set {}: {}\n", set.set->name, format_counted(entries_of(set), "entry", "entries"));
    }
    return Exit::done;
}

// Compares a set's list with the last good one: which entries are new, and which are gone.
Result<service::ListChange> list_change(const service::SetSurvey& survey,
                                        const service::StateDirectory& state) {
    Feed before(survey.set->feed.fields);
    if (survey.before()) {
        auto list = service::last_good_list(*survey.set, *survey.before(), state);
        // Of a set that changes in place, a daemon keeps another file, and a journal.
        if (!list) list = service::live::read_live_list(*survey.set, *survey.before(), state);
        // If the last good list has other fields, nothing in it compares with the new list.
        if (list) before = std::move(*list);
    }
    // An image cannot list its keys.
    const std::optional<Feed>& now = survey.examined->read->list;
    return service::compare_lists(before, now ? *now : Feed(survey.set->feed.fields));
}

Result<Exit> run_diff(const ApplyArguments& arguments, const service::Configuration& configuration,
                      Context& context) {
    const service::StateDirectory state = service::StateDirectory::look(
        configuration.state_directory, service::standard_spare(configuration.state_directory));
    SIEVE_ASSIGN(const std::vector<service::SetSurvey> surveys, survey(configuration, state, context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const std::vector<service::ManagedHook> managed, state.hooks(observer(context).remark));
    SIEVE_ASSIGN(const service::Pauses pauses, service::read_pauses(state.path()));
    service::WantedVersions wanted = service::wanted_versions(surveys);
    for (auto& [name, version] : wanted)
        if (!version.has_image() &&
            service::live::gets_first_image(configuration, *configuration.find_set(name)))
            version.filter = service::WantedFilter::new_build;
    service::ReconcilePlan plan = service::make_plan(kernel, configuration, wanted, managed, pauses);
    for (service::HookPlan& hook : plan.hooks) hook.let_go_what_moves();
    if (const std::optional<Error> error = service::first_failure(surveys, plan))
        return tl::unexpected(*error);
    nlohmann::json out = {{"configuration", arguments.path},
                          {"changes", !plan.nothing_to_do()},
                          {"hooks", nlohmann::json::array()},
                          {"sets", nlohmann::json::array()}};
    std::string text;
    for (const service::HookPlan& hook : plan.hooks) {
        out["hooks"].push_back(to_json(hook));
        text += describe(hook, false);
    }
    for (const service::SetSurvey& set : surveys) {
        nlohmann::json& entry =
            out["sets"].emplace_back(nlohmann::json{{"name", set.set->name}, {"entries", entries_of(set)}});
        if (!set.changed()) continue;
        SIEVE_ASSIGN(const service::ListChange change, list_change(set, state));
        entry["list"] = to_json(change);
        text += describe(set.set->name, entries_of(set), change);
    }
    if (context.json)
        print_out("{}\n", json_text(out));
    else
        print_out("{}", text.empty() ? "nothing to do\n" : text);
    return Exit::done;
}

// Whether every hook may change that this configuration names, or named.
Status may_change_hooks(const service::Configuration& configuration, bool force, const Context& context) {
    const std::string& path = configuration.state_directory;
    const auto manager = service::watching::find_manager();
    if (!manager) return {};
    if (manager->state == path)
        return failure(
            ErrorKind::busy,
            fmt::format("xdp-sieved (process {}) keeps {} in force; `systemctl reload xdp-sieved` has "
                        "it read that anew",
                        manager->pid, printable(manager->configuration)));
    const auto state = service::StateDirectory::look(path, service::standard_spare(path));
    SIEVE_ASSIGN(const std::vector<service::ManagedHook> managed, state.hooks([](const std::string&) {}));
    service::WantedVersions wanted;
    for (const service::SetConfiguration& set : configuration.sets) wanted[set.name];
    control::RealKernel kernel;
    for (const service::HookPlan& hook : service::make_plan(kernel, configuration, wanted, managed).hooks)
        SIEVE_TRY(may_change({hook.interface, hook.point}, Change::table, force, context));
    return {};
}

// The first failure, with a note of what was changed in spite of it.
std::optional<Error> failure_of(const service::CycleReport& report) {
    std::string changed;
    std::optional<Error> error;
    for (const service::HookReport& hook : report.hooks) {
        if (hook.error && !error) error = hook.error;
        if (hook.carried_out && hook.plan.step != service::HookStep::nothing)
            changed += (changed.empty() ? "" : ", ") + hook.plan.interface;
    }
    if (!error) error = report.unwritten;
    if (error && !changed.empty()) error->message += fmt::format("; changed before: {}", changed);
    return error;
}

void print(const ApplyArguments& arguments, const service::CycleReport& report, const Context& context) {
    if (context.json) {
        nlohmann::json out = {{"configuration", arguments.path},
                              {"changed", report.changed},
                              {"hooks", nlohmann::json::array()},
                              {"sets", nlohmann::json::array()}};
        for (const service::HookReport& hook : report.hooks) {
            nlohmann::json& entry = out["hooks"].emplace_back(to_json(hook.plan));
            entry["program_id"] = hook.done.program_id;
        }
        for (const service::SetReport& set : report.sets) {
            nlohmann::json entry = set.last_good ? to_json(*set.last_good) : nlohmann::json::object();
            entry["name"] = set.name;
            entry["replaced"] = set.outcome == service::SetOutcome::replaced;
            entry["milliseconds"] = to_json(set.times);
            out["sets"].push_back(std::move(entry));
        }
        print_out("{}\n", json_text(out));
        return;
    }
    if (context.quiet) return;
    if (!report.changed) print_out("nothing to do\n");
    for (const service::HookReport& hook : report.hooks)
        if (hook.carried_out) print_out("{}", describe(hook.plan, true));
    for (const service::SetReport& set : report.sets)
        if (set.outcome == service::SetOutcome::replaced)
            print_out("set {}: {}, {}, {}\n", set.name,
                      format_counted(set.last_good->entries, "entry", "entries"),
                      format_bytes(set.last_good->bytes),
                      set.last_good->expected_fpr == 0
                          ? "no false positives"
                          : "expected false positive rate " + format_rate(set.last_good->expected_fpr));
}

// Until this returns, a progress bar may be on the terminal.
Result<service::CycleReport> run_cycle(const control::Safety& safety,
                                       const service::Configuration& configuration, const Context& context) {
    control::RealKernel kernel;
    SIEVE_TRY(kernel.may_load_programs());
    const control::Observer listener = observer(context);
    const std::string& path = configuration.state_directory;
    SIEVE_ASSIGN(
        const service::StateDirectory state,
        service::StateDirectory::open(path, control::lock_patience, listener.waiting,
                                      {.spare = service::standard_spare(path), .tell = listener.remark}));
    state.mend();
    service::RealHostAddresses host({}, {}, listener.remark);
    SIEVE_ASSIGN(service::SandboxSettings sandbox, service::standard_sandbox());
    // Several sets are read and built at a time.
    sandbox.progress = [&listener, one_at_a_time = std::make_shared<std::mutex>()](std::string_view stage,
                                                                                   double share) {
        const std::lock_guard lock(*one_at_a_time);
        listener.progress(stage, share);
    };
    service::CycleOptions options{.sandbox = sandbox, .confirm_within = safety.confirm_within};
    service::take_over_renamed(configuration, state, listener);
    if (const auto awaiting = service::sets_that_await_bans(configuration, state); !awaiting.empty())
        return failure(ErrorKind::busy,
                       fmt::format("set {}: its bans are still under its former name", *awaiting.begin()));
    SIEVE_TRY(service::live::make_first_images(configuration, kernel, state, host, sandbox));
    SIEVE_ASSIGN(auto changed,
                 service::live::changed_since_their_images(configuration, kernel, state, listener));
    options.catch_up = [&](const std::string& set, std::uint32_t map_id) {
        if (const auto found = changed.find(set); found != changed.end()) found->second.catch_up(map_id);
    };
    auto report = service::run_cycle(kernel, configuration, state, host, options, listener);
    if (const std::optional<std::string> why = state.trouble())
        listener.remark(*why + "; what cannot be written is kept in memory, until the machine ends");
    return report;
}

Result<Exit> run_apply(ApplyArguments& arguments, const service::Configuration& configuration,
                       Context& context) {
    SIEVE_TRY(may_change_hooks(configuration, arguments.force, context));
    SIEVE_ASSIGN(const control::Safety safety, arguments.safety.safety(context));
    SIEVE_ASSIGN(const service::CycleReport report, run_cycle(safety, configuration, context));
    context.changed = report.changed;
    for (const service::HookReport& hook : report.hooks) {
        for (const std::string& text : hook.done.remarks) remark(context, text);
        for (const control::Warning& warning : hook.done.warnings) remark(context, warning_text(warning));
    }
    if (std::optional<Error> error = failure_of(report)) return tl::unexpected(std::move(*error));
    print(arguments, report, context);
    if (report.changed) arguments.safety.remark_on({}, context);
    return Exit::done;
}

Result<Exit> run(ApplyArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    if (arguments.check && arguments.diff)
        return invalid_request("--check and --diff: expected only one of them");
    if (!arguments.named.empty()) {
        if (arguments.path != service::standard_configuration && arguments.path != arguments.named)
            return invalid_request(fmt::format("{} and --config {}: expected one configuration",
                                               arguments.path, arguments.named));
        arguments.path = arguments.named;
    }
    SIEVE_ASSIGN(service::Configuration written, service::load_configuration(arguments.path));
    SIEVE_ASSIGN(const service::Configuration configuration, service::live::with_range_sets(written));
    for (const service::SetConfiguration& set : configuration.sets) {
        const std::string lists =
            service::sources_of_lists(set).empty() ? "" : ", and reads what it has besides";
        for (const service::SourceSpec& source : set.sources)
            if (service::is_stream(source))
                remark(context,
                       fmt::format("set {}: only xdp-sieved follows {}{}; until it runs, the set keeps "
                                   "what it has, and a new set has nothing but bans",
                                   set.name, service::source_name(source), lists));
    }
    for (const std::string& exposed : service::exposed_passwords(configuration)) remark(context, exposed);
    if (arguments.check) {
        SIEVE_ASSIGN(const service::Configuration readable,
                     service::live::with_range_sets(without_streams_beside_lists(std::move(written))));
        return run_check(arguments, readable, context);
    }
    if (arguments.diff) return run_diff(arguments, configuration, context);
    return run_apply(arguments, configuration, context);
}

} // namespace

void add_apply(CLI::App& app, Context& context) {
    add_command(
        app, context, "apply", "put a configuration in force: its sets on its interfaces",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<ApplyArguments>();
            command.add("CONFIG", arguments->path, "the configuration").show_default();
            command.add("--config", arguments->named, "likewise, as xdp-sieved takes it").called("CONFIG");
            command.add_flag("--check", arguments->check,
                             "only read configuration and lists; needs no root, touches nothing");
            command.add_flag("--diff", arguments->diff, "only show what would change");
            command.add_flag("--force", arguments->force, help_of_managed);
            arguments->safety.add_confirm_to(command);
            return [arguments, &context] { return run(*arguments, context); };
        });
}

} // namespace sieve::cli
