// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve swap: replaces the filter of one set while packets flow.
#include <memory>

#include "front-end/console/output.hpp"
#include "front-end/console/remedy.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/table/swap.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/geo_data.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"
#include "xdp-sieve/arguments/safety_arguments.hpp"
#include "xdp-sieve/reports/set_report.hpp"

namespace sieve::cli {

namespace {

struct SwapArguments {
    std::string interface;
    std::string set;
    std::string hook;
    bool force = false;
    SafetyArguments safety;
};

Result<Exit> run_swap(SwapArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(control::SetSpec spec, parse_set(arguments.set, context));
    SIEVE_ASSIGN(const control::HookName hook, parse_hook(arguments.interface, arguments.hook));
    SIEVE_TRY(may_change(hook, Change::table, arguments.force, context));
    SIEVE_ASSIGN(const control::Safety safety, arguments.safety.safety(context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::Swapped swapped,
                 control::swap(kernel, hook, std::move(spec), observer(context), safety));
    context.changed = true;
    for (const control::Warning& warning : swapped.warnings) remark(context, warning_text(warning));
    remark_on_test(swapped.set, context);
    if (context.json) {
        nlohmann::json out = to_json(swapped.set);
        out["interface"] = arguments.interface;
        out["hook"] = kernel::hook_point_name(swapped.point);
        out["swap_milliseconds"] = swapped.milliseconds;
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        print_out("{}: {}; swapped in {:.0f} ms\n", hook_title(arguments.interface, swapped.point),
                  describe(swapped.set), swapped.milliseconds);
    }
    arguments.safety.remark_on(arguments.interface, context);
    return Exit::done;
}

} // namespace

void add_swap(CLI::App& app, Context& context) {
    add_command(
        app, context, "swap", "replace one set's filter while packets flow",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<SwapArguments>();
            add_interface(command, arguments->interface, "the interface").required();
            command
                .add("SET", arguments->set,
                     "NAME=IMAGE[,verify=FEED], or NAME=FEED with options as `load` takes them; the set NAME "
                     "must be in force")
                .required();
            add_hook(command, arguments->hook, "the one that has the set if not given");
            command.add_flag("--force", arguments->force, help_of_managed);
            arguments->safety.add_to(command);
            return [arguments, &context] { return run_swap(*arguments, context); };
        });
}

} // namespace sieve::cli
