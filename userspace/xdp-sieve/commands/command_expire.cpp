// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve expire: takes keys out that were inserted for a time which is over.
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/keys/expire_keys.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"

namespace sieve::cli {

namespace {

Result<Exit> run_expire(const std::string& interface, const std::string& hook, Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName name, parse_hook(interface, hook));
    control::RealKernel kernel;
    if (!interface.empty()) SIEVE_TRY(kernel.find_interface(interface));
    SIEVE_ASSIGN(const std::vector<control::ExpiredKeys> expired,
                 control::expire_keys(kernel, name, observer(context)));
    context.changed = !expired.empty();
    if (context.json) {
        nlohmann::json sets = nlohmann::json::array();
        for (const control::ExpiredKeys& one : expired)
            sets.push_back({{"interface", one.hook.interface},
                            {"hook", kernel::hook_point_name(*one.hook.point)},
                            {"set", one.set},
                            {"taken_out", one.taken_out},
                            {"unsure", one.unsure}});
        print_out("{}\n", json_text(nlohmann::json{{"sets", std::move(sets)}}));
        return Exit::done;
    }
    for (const control::ExpiredKeys& one : expired) {
        if (one.unsure > 0)
            remark(context, fmt::format("set {}: {} stay, since a command was killed while it deleted them",
                                        one.set, format_counted(one.unsure, "key")));
        if (!context.quiet)
            print_out("{}: {}: {} taken out\n", hook_title(one.hook.interface, *one.hook.point), one.set,
                      format_counted(one.taken_out, "key"));
    }
    if (expired.empty() && !context.quiet) print_out("no key is overdue\n");
    return Exit::done;
}

} // namespace

void add_expire(CLI::App& app, Context& context) {
    add_command(app, context, "expire", "take keys out whose time is over (`insert --for`)",
                [&context](Arguments command) -> Action {
                    auto interface = std::make_shared<std::string>(), hook = std::make_shared<std::string>();
                    add_interface(command, *interface, "one interface; all of them if not given");
                    add_hook(command, *hook, "all of them if not given");
                    return [interface, hook, &context] { return run_expire(*interface, *hook, context); };
                });
}

} // namespace sieve::cli
