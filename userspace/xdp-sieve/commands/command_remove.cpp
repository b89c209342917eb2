// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve remove: takes one set out of force.
#include <memory>

#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/table/remove.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"
#include "xdp-sieve/arguments/safety_arguments.hpp"

namespace sieve::cli {

namespace {

struct RemoveArguments {
    std::string interface;
    std::string name;
    std::string hook;
    SafetyArguments safety;
    bool force = false;
};

Result<Exit> run_remove(RemoveArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName hook, parse_hook(arguments.interface, arguments.hook));
    SIEVE_TRY(may_change(hook, Change::table, arguments.force, context));
    SIEVE_ASSIGN(const control::Safety safety, arguments.safety.safety(context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::Removed removed,
                 control::remove(kernel, hook, arguments.name, observer(context), safety, arguments.force));
    context.changed = true;
    if (context.json)
        print_out("{}\n", json_text(nlohmann::json{{"interface", arguments.interface},
                                                   {"hook", kernel::hook_point_name(removed.point)},
                                                   {"removed", arguments.name},
                                                   {"sets_left", removed.left}}));
    else if (!context.quiet)
        print_out("{}: removed {}, {} left\n", hook_title(arguments.interface, removed.point), arguments.name,
                  format_counted(removed.left, "set"));
    arguments.safety.remark_on(arguments.interface, context);
    return Exit::done;
}

} // namespace

void add_remove(CLI::App& app, Context& context) {
    add_command(app, context, "remove", "take one set out of force", [&context](Arguments command) -> Action {
        auto arguments = std::make_shared<RemoveArguments>();
        add_interface(command, arguments->interface, "the interface").required();
        command.add("NAME", arguments->name, "the set").required();
        add_hook(command, arguments->hook, "the one that has the set if not given");
        command.add_flag("--force", arguments->force,
                         "also if no packet with a key would pass any more, under a default of drop, and on "
                         "a hook that the service manages");
        arguments->safety.add_to(command);
        return [arguments, &context] { return run_remove(*arguments, context); };
    });
}

} // namespace sieve::cli
