// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve load: attach if needed, then put a whole table of sets in force.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "libsieve/kernel/capabilities.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "xdp-sieve/hold_lock.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/live_set.hpp"
#include "xdp-sieve/verb.hpp"
#include "xdp-sieve/way_attached.hpp"

namespace sieve::cli {

namespace {

struct LoadArguments {
    std::string interface;
    std::vector<std::string> sets;
    std::string default_action = "pass";
    std::string mode;
    bool force = false;
    std::optional<std::uint32_t> priority;
    std::optional<std::string> chain;
};

Result<kernel::ModeChoice> parse_mode(const std::string& text) {
    if (text.empty() || text == "auto") return kernel::ModeChoice::automatic;
    if (text == "native") return kernel::ModeChoice::native;
    if (text == "skb") return kernel::ModeChoice::skb;
    return usage_error(fmt::format("-m {}: expected native, skb or auto", text));
}

Result<kernel::DispatcherPlace> parse_place(const LoadArguments& arguments) {
    kernel::DispatcherPlace place;
    if (arguments.priority) place.priority = *arguments.priority;
    if (arguments.chain) {
        const std::optional<std::uint32_t> chain = kernel::parse_chain(*arguments.chain);
        if (!chain)
            return usage_error(fmt::format(
                "--chain {}: expected none, or a comma list of aborted, drop, pass, tx and redirect",
                *arguments.chain));
        place.chain = *chain;
    }
    return place;
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
    if (hook.instance && (arguments.priority || arguments.chain))
        return usage_error(fmt::format("{} runs xdp-sieve already, {}; leave out --priority and --chain, or "
                                       "unload it first",
                                       hook.interface.name, way_attached(hook)));
    return {};
}

// The instance that the sets were tested in goes into service: the first packet it sees is already judged by
// them.
Result<kernel::Attached> attach_with_sets(const kernel::Hook& before, kernel::Scratch tested,
                                          const kernel::WantedTable& table,
                                          const kernel::AttachOptions& options) {
    SIEVE_ASSIGN(const kernel::BpfObject object, std::move(tested).release());
    SIEVE_TRY(kernel::SetTable(object.instance()).install(table));
    object.instance().control().loader = SIEVE_LOADER_SIEVE;
    return kernel::attach(before, object, options);
}

void print(const kernel::Attached& result, bool newly, const std::vector<ReadySet>& sets,
           const kernel::WantedTable& table, const Context& context) {
    const kernel::Hook& hook = result.hook;
    if (context.json) {
        nlohmann::json out = {{"interface", hook.interface.name},
                              {"attached_now", newly},
                              {"mode", kernel::mode_name(hook.mode)},
                              {"program_id", hook.ours->id},
                              {"default", action_name(table.default_action)},
                              {"sets", nlohmann::json::array()}};
        add_way_attached(out, hook);
        for (std::size_t i = 0; i < sets.size(); i++) {
            nlohmann::json set = to_json(sets[i]);
            add_action(set, {table.sets[i].action, table.sets[i].target});
            out["sets"].push_back(std::move(set));
        }
        fmt::print("{}\n", json_text(out));
        return;
    }
    if (context.quiet) return;
    fmt::print("{}: {}, {} mode, program {}, {}, default {}\n", hook.interface.name,
               newly ? "attached" : "running already", kernel::mode_name(hook.mode), hook.ours->id,
               way_attached(hook), action_name(table.default_action));
    for (std::size_t i = 0; i < sets.size(); i++)
        fmt::print("  {:<5} {}\n", describe_action({table.sets[i].action, table.sets[i].target}),
                   describe(sets[i]));
}

Result<Exit> run_load(const LoadArguments& arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const kernel::ModeChoice mode, parse_mode(arguments.mode));
    SIEVE_ASSIGN(const sieve_action default_action, parse_default(arguments.default_action));
    SIEVE_ASSIGN(const kernel::DispatcherPlace place, parse_place(arguments));
    SIEVE_ASSIGN(const std::vector<SetArgument> set_arguments, parse_sets(arguments.sets));
    SIEVE_ASSIGN(const kernel::Interface interface, kernel::find_interface(arguments.interface));
    constexpr int ordinary_mtu = 1500;
    const bool frags = kernel::interface_mtu(interface) > ordinary_mtu;
    {
        SIEVE_ASSIGN(const kernel::Hook hook, kernel::read_hook(interface));
        SIEVE_TRY(may_load(hook, arguments, mode));
    }
    // Remembered until it attaches, which takes longer right after the kernel was asked.
    static_cast<void>(kernel::may_use_dispatcher());

    SIEVE_ASSIGN(ReadySets ready, prepare_sets(set_arguments, frags, context));
    const std::vector<ReadySet>& sets = ready.sets;
    kernel::WantedTable table{.default_action = default_action, .sets = {}};
    for (std::size_t i = 0; i < sets.size(); i++) {
        const SetAction action = set_arguments[i].action.value_or(natural_action(default_action));
        table.sets.push_back({.name = sets[i].name,
                              .action = action.action,
                              .map_fd = sets[i].map.fd(),
                              .target = action.target,
                              .exact_fd = sets[i].exact_fd()});
    }

    SIEVE_ASSIGN(const kernel::Lock lock, hold_lock(context));
    SIEVE_ASSIGN(kernel::Hook hook, kernel::read_hook(interface));
    SIEVE_TRY(may_load(hook, arguments, mode));
    const bool newly = !hook.instance;
    kernel::Attached result;
    if (newly) {
        SIEVE_ASSIGN(result, attach_with_sets(hook, std::move(ready.scratch), table,
                                              {.mode = mode, .force = arguments.force, .place = place}));
        if ((arguments.priority || arguments.chain) && !result.hook.behind_dispatcher())
            result.remarks.emplace_back("--priority and --chain have no effect on a program that is alone");
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
             [&context](Arguments verb) -> Action {
                 auto arguments = std::make_shared<LoadArguments>();
                 verb.add("IFACE", arguments->interface, "the interface").required();
                 verb.add("SET", arguments->sets,
                          "NAME=IMAGE or NAME=FEED, with ,action=drop|pass|count or "
                          ",redirect=INTERFACE|cpu:NUMBER and with ,verify[=FEED] behind it; without an "
                          "action a match does what the default does not")
                     .required();
                 verb.add("--default", arguments->default_action,
                          "what becomes of packets that no set decides: pass or drop")
                     .show_default();
                 verb.add("-m,--mode", arguments->mode,
                          "native (in the driver), skb (generic) or auto (native, else skb)");
                 verb.add("--priority", arguments->priority,
                          "beside other programs: the lower number is asked first; 50 if not given")
                     .between(1, 65535);
                 verb.add("--chain", arguments->chain,
                          "beside other programs: after which of our verdicts the next one is asked, a "
                          "comma list of pass, drop and redirect, or none; pass if not given");
                 verb.add_flag("--force", arguments->force, "take the place of another XDP program");
                 return [arguments, &context] { return run_load(*arguments, context); };
             });
}

} // namespace sieve::cli
