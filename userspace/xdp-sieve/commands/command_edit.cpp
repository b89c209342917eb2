// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve set, add, default, replies: change one thing of the table in force; everything else stays.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "front-end/console/output.hpp"
#include "front-end/console/remedy.hpp"
#include "front-end/edit_argument.hpp"
#include "front-end/hook_argument.hpp"
#include "front-end/set_argument.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/table/edit_table.hpp"
#include "libsieve/control/table/replies.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/geo_data.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"
#include "xdp-sieve/arguments/safety_arguments.hpp"
#include "xdp-sieve/reports/replies_report.hpp"
#include "xdp-sieve/reports/set_report.hpp"

namespace sieve::cli {

namespace {

struct EditArguments {
    std::string interface;
    std::string name; // of the set; of `add`, with its source; of `default`, the action
    std::string hook;
    std::vector<std::string> words;
    RepliesArguments replies;
    bool keep_counters = false;
    bool force = false;
    SafetyArguments safety;
};

nlohmann::json json_of(const EditArguments& arguments, const control::Edited& edited) {
    return {{"interface", arguments.interface},
            {"hook", kernel::hook_point_name(edited.point)},
            {"changed", edited.changed},
            {"order", edited.order},
            {"milliseconds", edited.milliseconds}};
}

// What all three commands do with the change that was made.
std::string report(const EditArguments& arguments, const control::Edited& edited, Context& context) {
    context.changed = edited.changed;
    for (const control::Warning& warning : edited.warnings) remark(context, warning_text(warning));
    if (edited.changed) arguments.safety.remark_on(arguments.interface, context);
    return hook_title(arguments.interface, edited.point);
}

Result<Exit> run_set(EditArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(control::SetEdit edit, parse_edit(arguments.words));
    edit.keep_counters = arguments.keep_counters;
    edit.force = arguments.force;
    SIEVE_ASSIGN(const control::HookName hook, parse_hook(arguments.interface, arguments.hook));
    SIEVE_TRY(may_change(hook, Change::table, arguments.force, context));
    SIEVE_ASSIGN(const control::Safety safety, arguments.safety.safety(context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::SetEdited done,
                 control::edit_set(kernel, hook, arguments.name, edit, observer(context), safety));
    const std::string title = report(arguments, done.table, context);
    const bool other_action = done.now != done.before;
    if (context.json) {
        nlohmann::json out = json_of(arguments, done.table);
        out["set"] = arguments.name;
        add_action(out, done.now);
        out["action_before"] = describe_action(done.before);
        out["counters_kept"] = !other_action || arguments.keep_counters;
        print_out("{}\n", json_text(out));
    } else if (!context.quiet && !done.table.changed) {
        print_out("{}: {}: nothing to change\n", title, arguments.name);
    } else if (!context.quiet) {
        const std::string action = other_action
                                       ? fmt::format("{}, was {}; its counters {}", describe_action(done.now),
                                                     describe_action(done.before),
                                                     arguments.keep_counters ? "go on" : "start at zero")
                                       : describe_action(done.now);
        print_out("{}: {}: {}; order {}\n", title, arguments.name, action, fmt::join(done.table.order, ", "));
    }
    return Exit::done;
}

Result<Exit> run_add(EditArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::SetSpec spec, parse_set(arguments.name, context));
    SIEVE_ASSIGN(const control::Position position, parse_position(arguments.words));
    SIEVE_ASSIGN(const control::HookName hook, parse_hook(arguments.interface, arguments.hook));
    SIEVE_TRY(may_change(hook, Change::table, arguments.force, context));
    SIEVE_ASSIGN(const control::Safety safety, arguments.safety.safety(context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::SetAdded done,
                 control::add_set(kernel, hook, spec, position, arguments.force, observer(context), safety));
    const std::string title = report(arguments, done.table, context);
    remark_on_test(done.set, context);
    if (context.json) {
        nlohmann::json out = json_of(arguments, done.table);
        nlohmann::json set = to_json(done.set);
        add_action(set, done.action);
        out["set"] = std::move(set);
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        print_out("{}: {:<5} {}; order {}\n", title, describe_action(done.action), describe(done.set),
                  fmt::join(done.table.order, ", "));
    }
    return Exit::done;
}

Result<Exit> run_default(EditArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const sieve_action action, parse_pass_or_drop("default", arguments.name));
    SIEVE_ASSIGN(const control::HookName hook, parse_hook(arguments.interface, arguments.hook));
    SIEVE_TRY(may_change(hook, Change::table, arguments.force, context));
    SIEVE_ASSIGN(const control::Safety safety, arguments.safety.safety(context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::DefaultEdited done,
                 control::edit_default(kernel, hook, action, arguments.force, observer(context), safety));
    const std::string title = report(arguments, done.table, context);
    if (context.json) {
        nlohmann::json out = json_of(arguments, done.table);
        out["default"] = action_name(action);
        out["default_before"] = action_name(done.before);
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        print_out("{}: default {}{}\n", title, action_name(action),
                  done.table.changed ? fmt::format(", was {}", action_name(done.before))
                                     : std::string(" already"));
    }
    return Exit::done;
}

Result<Exit> run_replies(EditArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const sieve_action action, parse_pass_or_drop("replies", arguments.name));
    SIEVE_ASSIGN(const control::WantedFlows flows, arguments.replies.flows());
    SIEVE_ASSIGN(const control::HookName hook, parse_hook(arguments.interface, arguments.hook));
    SIEVE_TRY(may_change(hook, Change::table, arguments.force, context));
    SIEVE_ASSIGN(const control::Safety safety, arguments.safety.safety(context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::RepliesEdited done,
                 control::edit_replies(kernel, hook, action, flows, observer(context), safety));
    const std::string title = report(arguments, done.table, context);
    if (context.json) {
        nlohmann::json out = json_of(arguments, done.table);
        out["replies"] = action_name(action);
        out["replies_before"] = action_name(done.before);
        if (done.made) out["flows"] = to_json(*done.made);
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        print_out("{}: replies {}{}\n", title, action_name(action),
                  !done.table.changed     ? std::string(" already")
                  : done.before == action ? std::string(", as before; what they need is back")
                                          : fmt::format(", was {}", action_name(done.before)));
        if (done.made) print_out("  {}\n", describe(*done.made));
    }
    return Exit::done;
}

constexpr char help_of_force[] =
    "also if no packet with a key would pass any more, and on a hook that the service manages";

} // namespace

void add_set(CLI::App& app, Context& context) {
    add_command(
        app, context, "set",
        "change one set's action, condition or place in the order; everything else stays",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<EditArguments>();
            add_interface(command, arguments->interface, "the interface").required();
            command.add("NAME", arguments->name, "the set, which is in force").required();
            command
                .add("EDIT", arguments->words,
                     "action=" + control::action_names() +
                         ", limit=PPS[/BURST] or redirect=INTERFACE|cpu:NUMBER, "
                         "replies=pass|drop, dport=PORTS, sport=PORTS and proto=PROTOCOLS, each any for no "
                         "condition, and before=NAME, after=NAME, first or last")
                .required();
            add_hook(command, arguments->hook, "the one that has the set if not given");
            command.add_flag("--keep-counters", arguments->keep_counters,
                             "under another action, too, go on with the set's counters");
            command.add_flag("--force", arguments->force, help_of_force);
            arguments->safety.add_to(command);
            return [arguments, &context] { return run_set(*arguments, context); };
        });
}

void add_add(CLI::App& app, Context& context) {
    add_command(app, context, "add", "put one more set in force; everything else stays",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<EditArguments>();
                    add_interface(command, arguments->interface, "the interface").required();
                    command
                        .add("SET", arguments->name,
                             "NAME=IMAGE or NAME=FEED, with the options that `load` takes behind it")
                        .required();
                    command.add("PLACE", arguments->words,
                                "before=NAME, after=NAME, first or last; last if not given");
                    add_hook(command, arguments->hook, hook_in_use);
                    command.add_flag("--force", arguments->force, help_of_force);
                    arguments->safety.add_to(command);
                    return [arguments, &context] { return run_add(*arguments, context); };
                });
}

void add_default(CLI::App& app, Context& context) {
    add_command(app, context, "default",
                "change what becomes of packets that no set decides; everything else stays",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<EditArguments>();
                    add_interface(command, arguments->interface, "the interface").required();
                    command.add("VERDICT", arguments->name, "pass or drop").required();
                    add_hook(command, arguments->hook, hook_in_use);
                    command.add_flag("--force", arguments->force, help_of_force);
                    arguments->safety.add_to(command);
                    return [arguments, &context] { return run_default(*arguments, context); };
                });
}

void add_replies(CLI::App& app, Context& context) {
    add_command(app, context, "replies",
                "change whether answers to this host pass where they would be dropped; everything else stays",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<EditArguments>();
                    add_interface(command, arguments->interface, "the interface").required();
                    command.add("VERDICT", arguments->name, "pass or drop").required();
                    arguments->replies.add_max_flows_to(command);
                    add_hook(command, arguments->hook, hook_in_use);
                    command.add_flag("--force", arguments->force, "also on a hook that the service manages");
                    arguments->safety.add_to(command);
                    return [arguments, &context] { return run_replies(*arguments, context); };
                });
}

} // namespace sieve::cli
