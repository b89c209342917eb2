// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve load: attach if needed, then put a whole table of sets in force.
#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "libsieve/kernel/attach.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "xdp-sieve/hold_lock.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/live_set.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

namespace {

struct LoadArguments {
    std::string interface;
    std::vector<std::string> sets;
    std::string default_action = "pass";
    std::string mode;
    bool force = false;
};

Result<kernel::ModeChoice> parse_mode(const std::string& text) {
    if (text.empty() || text == "auto") return kernel::ModeChoice::automatic;
    if (text == "native") return kernel::ModeChoice::native;
    if (text == "skb") return kernel::ModeChoice::skb;
    return usage_error(fmt::format("-m {}: expected native, skb or auto", text));
}

Result<std::vector<SetArgument>> parse_sets(const std::vector<std::string>& texts) {
    if (texts.size() > SIEVE_MAX_SETS)
        return usage_error(
            fmt::format("{} sets, but the program takes at most {}", texts.size(), SIEVE_MAX_SETS));
    std::vector<SetArgument> arguments;
    for (const std::string& text : texts) {
        SIEVE_ASSIGN(SetArgument argument, parse_set_argument(text));
        for (const SetArgument& other : arguments)
            if (other.name == argument.name)
                return usage_error(fmt::format("set {} is given twice", argument.name));
        arguments.push_back(std::move(argument));
    }
    return arguments;
}

// What stands against loading here, before any work was done for it.
Status may_load(const kernel::Hook& hook, const LoadArguments& arguments, kernel::ModeChoice mode) {
    if (hook.foreign() && !arguments.force && hook.attached->name != kernel::dispatcher_name)
        return kernel_refused(fmt::format(
            "{} runs another XDP program, {} (id {}); `--force` takes its place", hook.interface.name,
            hook.attached->name.empty() ? "without a name" : hook.attached->name, hook.attached->id));
    if (hook.ours && !hook.instance && !arguments.force) return kernel_refused(hook.other_version);
    if (hook.instance && ((mode == kernel::ModeChoice::native && hook.mode != kernel::Mode::native) ||
                          (mode == kernel::ModeChoice::skb && hook.mode != kernel::Mode::skb)))
        return usage_error(
            fmt::format("{} runs xdp-sieve in {} mode already; leave out -m, or unload it first",
                        hook.interface.name, kernel::mode_name(hook.mode)));
    return {};
}

// Sets go into a new instance before it is attached: the first packet it sees is already judged by them.
Result<kernel::Attached> attach_with_sets(const kernel::Hook& before, const kernel::WantedTable& table,
                                          const kernel::AttachOptions& options) {
    constexpr int ordinary_mtu = 1500;
    SIEVE_ASSIGN(const kernel::BpfObject object,
                 kernel::BpfObject::load(
                     {.tracing = false, .frags = kernel::interface_mtu(before.interface) > ordinary_mtu}));
    SIEVE_TRY(kernel::SetTable(object.instance()).replace(table));
    return kernel::attach(before, object, options);
}

void print(const kernel::Attached& result, bool newly, const std::vector<ReadySet>& sets,
           const kernel::WantedTable& table, const Context& context) {
    const kernel::Hook& hook = result.hook;
    if (context.json) {
        nlohmann::json out = {
            {"interface", hook.interface.name},       {"attached_now", newly},
            {"mode", kernel::mode_name(hook.mode)},   {"program_id", hook.ours->id},
            {"dispatcher", hook.behind_dispatcher()}, {"default", action_name(table.default_action)},
            {"sets", nlohmann::json::array()}};
        for (std::size_t i = 0; i < sets.size(); i++) {
            nlohmann::json set = to_json(sets[i]);
            set["action"] = action_name(table.sets[i].action);
            out["sets"].push_back(std::move(set));
        }
        fmt::print("{}\n", json_text(out));
        return;
    }
    if (context.quiet) return;
    fmt::print("{}: {}, {} mode, program {}, default {}\n", hook.interface.name,
               newly ? "attached" : "running already", kernel::mode_name(hook.mode), hook.ours->id,
               action_name(table.default_action));
    for (std::size_t i = 0; i < sets.size(); i++)
        fmt::print("  {:<5} {}\n", action_name(table.sets[i].action), describe(sets[i]));
}

Result<Exit> run_load(const LoadArguments& arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const kernel::ModeChoice mode, parse_mode(arguments.mode));
    SIEVE_ASSIGN(const sieve_action default_action, parse_default(arguments.default_action));
    SIEVE_ASSIGN(const std::vector<SetArgument> set_arguments, parse_sets(arguments.sets));
    SIEVE_ASSIGN(const kernel::Interface interface, kernel::find_interface(arguments.interface));
    {
        SIEVE_ASSIGN(const kernel::Hook hook, kernel::read_hook(interface));
        SIEVE_TRY(may_load(hook, arguments, mode));
    }

    SIEVE_ASSIGN(const std::vector<ReadySet> sets, prepare_sets(set_arguments, context));
    kernel::WantedTable table{.default_action = default_action, .sets = {}};
    for (std::size_t i = 0; i < sets.size(); i++)
        table.sets.push_back({.name = sets[i].name,
                              .action = set_arguments[i].action.value_or(natural_action(default_action)),
                              .map_fd = sets[i].map.fd()});

    SIEVE_ASSIGN(const kernel::Lock lock, hold_lock(context));
    SIEVE_ASSIGN(kernel::Hook hook, kernel::read_hook(interface));
    SIEVE_TRY(may_load(hook, arguments, mode));
    const bool newly = !hook.instance;
    kernel::Attached result;
    if (newly) {
        SIEVE_ASSIGN(result, attach_with_sets(hook, table, {.mode = mode, .force = arguments.force}));
        for (const std::string& text : result.remarks) remark(context, text);
    } else {
        SIEVE_TRY(kernel::SetTable(*hook.instance).replace(table));
        result.hook = std::move(hook);
    }
    print(result, newly, sets, table, context);
    return Exit::done;
}

} // namespace

void add_load(CLI::App& app, Context& context) {
    add_verb(app, context, "load", "attach to an interface and put these sets in force, in this order",
             [&context](CLI::App& verb) -> Action {
                 auto arguments = std::make_shared<LoadArguments>();
                 verb.add_option("IFACE", arguments->interface, "the interface")->required();
                 verb.add_option(
                         "SET", arguments->sets,
                         "NAME=IMAGE or NAME=FEED, with ,action=drop|pass|count behind it; without an "
                         "action a match does what the default does not")
                     ->required();
                 verb.add_option("--default", arguments->default_action,
                                 "what becomes of packets that no set decides: pass or drop")
                     ->capture_default_str();
                 verb.add_option("-m,--mode", arguments->mode,
                                 "native (in the driver), skb (generic) or auto (native, else skb)");
                 verb.add_flag("--force", arguments->force, "take the place of another XDP program");
                 return [arguments, &context] { return run_load(*arguments, context); };
             });
}

} // namespace sieve::cli
