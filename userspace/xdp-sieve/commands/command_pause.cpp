// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve pause, xdp-sieve resume: the lasting off switch (libsieve/service/state/pauses.hpp).
#include <net/if.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/contact/manager.hpp"
#include "libsieve/service/state/pauses.hpp"
#include "libsieve/util/results/unfinished.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"

namespace sieve::cli {

namespace {

struct PauseArguments {
    std::string interface;
    std::string configuration = service::standard_configuration;
};

Status check_name(const std::string& interface) {
    const bool possible = interface.size() < IFNAMSIZ && interface != "." && interface != ".." &&
                          std::ranges::none_of(interface, [](unsigned char byte) {
                              return byte == '/' || byte == ':' || std::isspace(byte) != 0 || byte == 0;
                          });
    if (possible) return {};
    return invalid_request(fmt::format("{}: no interface can have this name", printable(interface)));
}

struct Unloaded {
    std::string interface;
    kernel::HookPoint point;
    std::uint32_t program_id;
};

// Under the lock, whoever would attach our program sees the pause, or has attached it already.
Result<std::vector<Unloaded>> unload_all(const std::string& interface, const Context& context) {
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::Held lock, control::hold_lock(kernel, observer(context)));
    SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, control::hooks_of(kernel, {.interface = interface}));
    std::vector<Unloaded> unloaded;
    for (const kernel::Hook& hook : hooks) {
        const std::uint32_t id = hook.ours->id;
        SIEVE_TRY(kernel.detach(hook));
        unloaded.push_back({hook.interface.name, hook.point, id});
    }
    return unloaded;
}

std::string subject(const std::string& interface) {
    return interface.empty() ? std::string("every interface") : interface;
}

std::string behind(const std::string& interface) {
    return interface.empty() ? std::string() : " " + interface;
}

Result<Exit> run_pause(const PauseArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    const std::string& interface = arguments.interface;
    SIEVE_TRY(check_name(interface));
    SIEVE_ASSIGN(const std::string state, state_at(arguments.configuration, context));
    SIEVE_TRY(make_state(state, context));
    SIEVE_TRY(service::add_pause(state, interface));
    context.changed = true;
    std::vector<Unloaded> unloaded;
    if (interface.empty() || ::if_nametoindex(interface.c_str()) != 0) {
        Result<std::vector<Unloaded>> done = unload_all(interface, context);
        if (!done)
            return unfinished(fmt::format("{}: the pause is noted, but the program could not be taken off",
                                          subject(interface)),
                              done.error());
        unloaded = std::move(*done);
    } else {
        remark(context,
               fmt::format("{}: there is no interface of that name now; it is paused when it appears",
                           interface));
    }
    if (context.json) {
        nlohmann::json out = {{"paused", true},
                              {"interface", interface.empty() ? nlohmann::json() : nlohmann::json(interface)},
                              {"unloaded", nlohmann::json::array()}};
        for (const Unloaded& one : unloaded)
            out["unloaded"].push_back({{"interface", one.interface},
                                       {"hook", kernel::hook_point_name(one.point)},
                                       {"program_id", one.program_id}});
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        for (const Unloaded& one : unloaded)
            print_out("{}: unloaded (program {})\n", hook_title(one.interface, one.point), one.program_id);
        print_out("{}: paused; xdp-sieve judges no packet there until `xdp-sieve resume{}`\n",
                  subject(interface), behind(interface));
    }
    return Exit::done;
}

Result<Exit> run_resume(const PauseArguments& arguments, Context& context) {
    const std::string& interface = arguments.interface;
    SIEVE_TRY(check_name(interface));
    SIEVE_ASSIGN(const std::string state, state_at(arguments.configuration, context));
    SIEVE_ASSIGN(const service::Pauses before, service::read_pauses(state));
    if (!interface.empty() && before.everywhere)
        return failure(ErrorKind::no,
                       fmt::format("{}: every interface is paused; `xdp-sieve resume` ends that", interface));
    SIEVE_ASSIGN(const bool ended, service::end_pause(state, interface));
    context.changed = ended;
    const auto manager = service::watching::find_manager();
    if (context.json) {
        print_out("{}\n", json_text(nlohmann::json{
                              {"paused", false},
                              {"interface", interface.empty() ? nlohmann::json() : nlohmann::json(interface)},
                              {"was_paused", ended}}));
    } else if (!context.quiet && !ended) {
        print_out("{}: was not paused\n", subject(interface));
    } else if (!context.quiet) {
        print_out("{}: resumed; {}\n", interface.empty() ? paused_text(before) : interface,
                  manager ? fmt::format("xdp-sieved (process {}) puts its sets in force again", manager->pid)
                          : std::string("xdp-sieved does not run, so start it, or `xdp-sieve apply` puts the "
                                        "configuration in force"));
    }
    return Exit::done;
}

Action define(Arguments command, Context& context, Result<Exit> (*run)(const PauseArguments&, Context&)) {
    auto arguments = std::make_shared<PauseArguments>();
    add_interface(command, arguments->interface, "one interface; all of them if not given");
    command
        .add("--config", arguments->configuration,
             "the configuration, which names the state directory; that of a running xdp-sieved comes first")
        .called("CONFIG")
        .show_default();
    return [arguments, run, &context] { return run(*arguments, context); };
}

} // namespace

void add_pause(CLI::App& app, Context& context) {
    add_command(app, context, "pause",
                "take the program off and keep the service from attaching it, over restarts, until `resume`",
                [&context](Arguments command) { return define(command, context, run_pause); });
}

void add_resume(CLI::App& app, Context& context) {
    add_command(app, context, "resume", "end a pause: the service puts its sets in force again",
                [&context](Arguments command) { return define(command, context, run_resume); });
}

} // namespace sieve::cli
