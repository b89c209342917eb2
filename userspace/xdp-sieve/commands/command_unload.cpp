// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve unload: detaches the program. Everything else goes with it, since nothing is pinned.
#include <memory>

#include <nlohmann/json.hpp>

#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/table/unload.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"

namespace sieve::cli {

namespace {

Result<Exit> run_unload(const std::string& name, const std::string& hook, bool force, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName at, parse_hook(name, hook));
    SIEVE_TRY(may_change(at, Change::unload, force, context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::Unloaded unloaded, control::unload(kernel, at, observer(context)));
    context.changed = true;
    if (context.json)
        print_out("{}\n", json_text(nlohmann::json{{"interface", name},
                                                   {"hook", kernel::hook_point_name(unloaded.point)},
                                                   {"program_id", unloaded.program_id}}));
    else if (!context.quiet)
        print_out("{}: unloaded (program {})\n", hook_title(name, unloaded.point), unloaded.program_id);
    return Exit::done;
}

} // namespace

void add_unload(CLI::App& app, Context& context) {
    add_command(app, context, "unload", "take the program and its sets off an interface",
                [&context](Arguments command) -> Action {
                    auto interface = std::make_shared<std::string>(), hook = std::make_shared<std::string>();
                    add_interface(command, *interface, "the interface").required();
                    add_hook(command, *hook, hook_in_use);
                    auto force = std::make_shared<bool>(false);
                    command.add_flag("--force", *force, help_of_managed);
                    return [interface, hook, force, &context] {
                        return run_unload(*interface, *hook, *force, context);
                    };
                });
}

} // namespace sieve::cli
