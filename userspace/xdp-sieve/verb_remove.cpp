// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve remove: one set less.
#include <memory>

#include <nlohmann/json.hpp>

#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/remove.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/hook_argument.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/output.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

namespace {

struct RemoveArguments {
    HookArgument hook;
    std::string name;
};

Result<Exit> run_remove(const RemoveArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::HookName hook, find_hook(kernel, arguments.hook, arguments.name));
    SIEVE_ASSIGN(const std::size_t left, control::remove(kernel, hook, arguments.name, observer(context)));
    context.changed = true;
    if (context.json) {
        nlohmann::json out = {{"removed", arguments.name}, {"sets_left", left}};
        add_hook_name(out, hook);
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        print_out("{}: removed {}, {} left\n", hook_text(hook), arguments.name, format_counted(left, "set"));
    }
    return Exit::done;
}

} // namespace

void add_remove(CLI::App& app, Context& context) {
    add_verb(app, context, "remove", "take one set out of force", [&context](Arguments verb) -> Action {
        auto arguments = std::make_shared<RemoveArguments>();
        add_hook(verb, arguments->hook);
        verb.add("NAME", arguments->name, "the set").required();
        return [arguments, &context] { return run_remove(*arguments, context); };
    });
}

} // namespace sieve::cli
