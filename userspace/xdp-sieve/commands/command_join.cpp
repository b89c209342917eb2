// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve join: lets one lookup answer for sets in force, from the feeds that they were built from.
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "front-end/console/output.hpp"
#include "front-end/console/remedy.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/table/rejoin.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/geo_data.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"
#include "xdp-sieve/arguments/safety_arguments.hpp"
#include "xdp-sieve/reports/joint_report.hpp"

namespace sieve::cli {

namespace {

struct JoinArguments {
    std::string interface;
    std::vector<std::string> sets;
    std::string hook;
    bool force = false;
    SafetyArguments safety;
};

Result<std::vector<control::SetList>> read_lists(const JoinArguments& arguments, const Context& context) {
    std::vector<control::SetList> lists;
    for (const std::string& text : arguments.sets) {
        SIEVE_ASSIGN(const control::SetSpec spec, parse_set(text, context));
        if (spec.action || spec.verify)
            return invalid_request(fmt::format(
                "set {}: joining changes neither the action nor the verification of a set", spec.name));
        SIEVE_ASSIGN(control::SetList list, control::read_set_list(spec, observer(context)));
        lists.push_back(std::move(list));
    }
    return lists;
}

Result<Exit> run_join(JoinArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName hook, parse_hook(arguments.interface, arguments.hook));
    SIEVE_TRY(may_change(hook, Change::table, arguments.force, context));
    SIEVE_ASSIGN(const control::Safety safety, arguments.safety.safety(context));
    SIEVE_ASSIGN(const std::vector<control::SetList> lists, read_lists(arguments, context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::Rejoined done,
                 control::rejoin(kernel, hook, lists, observer(context), safety));
    context.changed = done.joined.has_value();
    if (context.json) {
        nlohmann::json out = {{"interface", arguments.interface},
                              {"hook", kernel::hook_point_name(done.hook.point)},
                              {"swap_milliseconds", done.milliseconds}};
        if (done.joined) out["joint"] = to_json(*done.joined);
        print_out("{}\n", json_text(out));
    } else if (!context.quiet && done.joined) {
        print_out("{}: {}; swapped in {:.0f} ms\n", hook_title(arguments.interface, done.hook.point),
                  describe(*done.joined), done.milliseconds);
    }
    return done.joined ? Exit::done : Exit::no;
}

} // namespace

void add_join(CLI::App& app, Context& context) {
    add_command(app, context, "join", "let one lookup answer for sets in force, from their feeds",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<JoinArguments>();
                    add_interface(command, arguments->interface, "the interface").required();
                    command
                        .add("SET", arguments->sets,
                             "NAME=FEED, with the options as for `load` that say how the feed is read; the "
                             "feed must be the one that the set's filter was built from")
                        .required();
                    add_hook(command, arguments->hook, "the one that has the first set if not given");
                    command.add_flag("--force", arguments->force, help_of_managed);
                    arguments->safety.add_questions_to(command);
                    return [arguments, &context] { return run_join(*arguments, context); };
                });
}

} // namespace sieve::cli
