// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve confirm: keeps a change that is on probation, or takes it back at once.
#include <memory>

#include <fmt/core.h>

#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/reports/set_report.hpp"

namespace sieve::cli {

namespace {

struct ConfirmArguments {
    std::string interface;
    std::string hook;
    bool take_back = false;
};

Result<Exit> run_confirm(const ConfirmArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName name, parse_hook(arguments.interface, arguments.hook));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks,
                 control::end_probation(kernel, name,
                                        arguments.take_back ? control::ProbationEnd::take_back
                                                            : control::ProbationEnd::keep,
                                        observer(context)));
    context.changed = true;
    if (context.json) {
        nlohmann::json out = {{"verdict", arguments.take_back ? "taken_back" : "kept"},
                              {"interfaces", nlohmann::json::array()}};
        for (const kernel::Hook& hook : hooks)
            out["interfaces"].push_back(
                {{"interface", hook.interface.name}, {"hook", kernel::hook_point_name(hook.point)}});
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        for (const kernel::Hook& hook : hooks)
            print_out("{}: the last change is {}\n", hook_title(hook.interface.name, hook.point),
                      arguments.take_back ? "taken back" : "confirmed");
    }
    return Exit::done;
}

} // namespace

void add_confirm(CLI::App& app, Context& context) {
    add_command(app, context, "confirm", "keep a change that was made with --confirm",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<ConfirmArguments>();
                    add_interface(command, arguments->interface, "one interface; all of them if not given");
                    add_hook(command, arguments->hook, "all of them if not given");
                    command.add_flag("--take-back", arguments->take_back, "take the change back now instead");
                    return [arguments, &context] { return run_confirm(*arguments, context); };
                });
}

} // namespace sieve::cli
