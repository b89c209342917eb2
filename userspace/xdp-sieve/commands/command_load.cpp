// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve load: attaches the program if needed, then puts a whole table of sets in force.
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/console/remedy.hpp"
#include "front-end/hook_argument.hpp"
#include "front-end/set_argument.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/table/apply.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/geo_data.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"
#include "xdp-sieve/arguments/safety_arguments.hpp"
#include "xdp-sieve/reports/joint_report.hpp"
#include "xdp-sieve/reports/replies_report.hpp"
#include "xdp-sieve/reports/set_report.hpp"
#include "xdp-sieve/reports/unreadable.hpp"
#include "xdp-sieve/reports/way_attached.hpp"

namespace sieve::cli {

namespace {

struct LoadArguments {
    std::string interface;
    std::vector<std::string> sets;
    std::string default_action = "pass";
    std::string unreadable = "drop";
    RepliesArguments replies;
    std::string mode;
    std::string hook;
    bool force = false;
    bool replace = false;
    bool keep_counters = false;
    bool join = false;
    std::optional<std::uint32_t> priority;
    std::optional<std::string> chain;
    SafetyArguments safety;
};

Result<kernel::ModeChoice> parse_mode(const std::string& text) {
    if (text.empty()) return kernel::ModeChoice::automatic;
    if (const std::optional<kernel::ModeChoice> mode = control::parse_mode(text)) return *mode;
    return invalid_request(fmt::format("-m {}: expected native, skb or auto", text));
}

Result<control::TableSpec> parse_table(const LoadArguments& arguments, const Context& context) {
    control::TableSpec table;
    SIEVE_ASSIGN(const control::HookName hook, parse_hook(arguments.interface, arguments.hook));
    table.interface = hook.interface;
    table.point = hook.point.value_or(kernel::HookPoint::xdp);
    table.force = arguments.force;
    table.replace = arguments.replace;
    table.keep_counters = arguments.keep_counters;
    table.join = arguments.join;
    table.priority = arguments.priority;
    SIEVE_ASSIGN(table.mode, parse_mode(arguments.mode));
    SIEVE_ASSIGN(table.default_action, parse_pass_or_drop("--default", arguments.default_action));
    SIEVE_ASSIGN(table.unreadable, parse_pass_or_drop("--unreadable", arguments.unreadable));
    SIEVE_ASSIGN(table.replies, arguments.replies.parse());
    SIEVE_ASSIGN(table.flows, arguments.replies.flows());
    if (arguments.chain) {
        table.chain = kernel::parse_chain(*arguments.chain);
        if (!table.chain)
            return invalid_request(fmt::format(
                "--chain {}: expected none, or a comma list of aborted, drop, pass, tx and redirect",
                *arguments.chain));
    }
    for (const std::string& text : arguments.sets) {
        SIEVE_ASSIGN(control::SetSpec set, parse_set(text, context));
        table.sets.push_back(std::move(set));
    }
    return table;
}

void print(const control::Applied& applied, const Context& context) {
    const kernel::Hook& hook = applied.hook;
    const kernel::WantedTable& table = applied.table;
    if (context.json) {
        nlohmann::json out = {{"interface", hook.interface.name},
                              {"hook", kernel::hook_point_name(hook.point)},
                              {"attached_now", applied.attached_now},
                              {"mode", mode_json(hook)},
                              {"program_id", hook.ours->id},
                              {"default", action_name(table.default_action)},
                              {"unreadable", {{"action", action_name(table.unreadable)}}},
                              {"replies", action_name(table.replies)},
                              {"sets", nlohmann::json::array()}};
        add_way_attached(out, hook);
        if (applied.replies) out["flows"] = to_json(*applied.replies);
        if (applied.joined) out["joint"] = to_json(*applied.joined);
        for (std::size_t i = 0; i < applied.sets.size(); i++) {
            nlohmann::json set = to_json(applied.sets[i]);
            add_action(set, control::action_of(table.sets[i]));
            out["sets"].push_back(std::move(set));
        }
        print_out("{}\n", json_text(out));
        return;
    }
    if (context.quiet) return;
    print_out("{}: {}, {}program {}, {}, default {}\n", hook_title(hook.interface.name, hook.point),
              applied.attached_now ? "attached" : "running already", mode_text(hook), hook.ours->id,
              way_attached(hook), action_name(table.default_action));
    for (std::size_t i = 0; i < applied.sets.size(); i++)
        print_out("  {:<5} {}\n", describe_action(control::action_of(table.sets[i])),
                  describe(applied.sets[i]));
    if (applied.joined) print_out("  {}\n", describe(*applied.joined));
    if (applied.replies) print_out("  {}\n", describe(*applied.replies));
}

Result<Exit> run_load(LoadArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::TableSpec table, parse_table(arguments, context));
    SIEVE_TRY(may_change({table.interface, table.point}, Change::table, arguments.force, context));
    SIEVE_ASSIGN(const control::Safety safety, arguments.safety.safety(context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::Applied applied, control::apply(kernel, table, observer(context), safety));
    context.changed = true;
    for (const std::string& text : applied.remarks) remark(context, text);
    if (applied.place_ignored) remark(context, "--priority and --chain have no effect without a dispatcher");
    for (const control::Warning& warning : applied.warnings) remark(context, warning_text(warning));
    for (const control::ReadySet& set : applied.sets) remark_on_test(set, context);
    print(applied, context);
    arguments.safety.remark_on(arguments.interface, context);
    return Exit::done;
}

} // namespace

void add_load(CLI::App& app, Context& context) {
    add_command(
        app, context, "load", "attach to an interface and put these sets in force, in this order",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<LoadArguments>();
            add_interface(command, arguments->interface, "the interface").required();
            command
                .add("SET", arguments->sets,
                     "NAME=IMAGE or NAME=FEED, a FEED being a file, a folder, a pattern or a URL, with "
                     ",action=" +
                         control::action_names() +
                         ", ,limit=PPS[/BURST] or ,redirect=INTERFACE|cpu:NUMBER and with ,dport=PORTS, "
                         ",sport=PORTS, ,proto=PROTOCOLS, ,verify[=FEED] and ,replies=drop behind it; behind "
                         "a "
                         "feed "
                         "also ,feed=FILE for more of them and the options of `build`, such as ,fpr=1e-5; "
                         "the default action is the opposite of --default")
                .required();
            add_hook(command, arguments->hook, "xdp if not given");
            command
                .add("--default", arguments->default_action,
                     "what becomes of packets that no set decides: pass or drop")
                .called("pass|drop")
                .show_default();
            command.add("--unreadable", arguments->unreadable, unreadable_help)
                .called("drop|pass")
                .show_default();
            arguments->replies.add_to(command);
            command
                .add("-m,--mode", arguments->mode,
                     "at xdp: native (in the driver), skb (generic) or auto (native, else skb)")
                .called("native|skb|auto");
            command
                .add("--priority", arguments->priority,
                     "beside other programs: the lower number is asked first; 50 if not given")
                .between(1, 65535);
            command
                .add("--chain", arguments->chain,
                     "beside other programs at xdp: after which of our verdicts the next one is asked, a "
                     "comma list of pass, drop, redirect, tx and aborted, or none; pass if not given")
                .called("VERDICTS");
            command.add_flag("--keep-counters", arguments->keep_counters,
                             "sets in force go on with their counters, under another list or action, too");
            command.add_flag("--join", arguments->join,
                             "one lookup for all sets that were built from feeds of single keys of the same "
                             "fields; takes their memory twice");
            command.add_flag(
                "--force", arguments->force,
                "replace another XDP program, or an allowlist by a table that lets everybody in, "
                "or nobody; change a hook that the service manages");
            command.add_flag("--replace", arguments->replace, "sets in force that are not named here go");
            arguments->safety.add_to(command);
            return [arguments, &context] { return run_load(*arguments, context); };
        });
}

} // namespace sieve::cli
