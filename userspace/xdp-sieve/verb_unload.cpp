// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve unload: takes the program away, and with it everything, since nothing is pinned.
#include <memory>

#include <nlohmann/json.hpp>

#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/unload.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "xdp-sieve/hook_argument.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/output.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

namespace {

Result<Exit> run_unload(const HookArgument& argument, Context& context) {
    kernel::set_verbose(context.verbose);
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::HookName hook, find_hook(kernel, argument));
    SIEVE_ASSIGN(const std::uint32_t id, control::unload(kernel, hook, observer(context)));
    context.changed = true;
    if (context.json) {
        nlohmann::json out = {{"program_id", id}};
        add_hook_name(out, hook);
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        print_out("{}: unloaded (program {})\n", hook_text(hook), id);
    }
    return Exit::done;
}

} // namespace

void add_unload(CLI::App& app, Context& context) {
    add_verb(app, context, "unload", "take the program and its sets off an interface",
             [&context](Arguments verb) -> Action {
                 auto hook = std::make_shared<HookArgument>();
                 add_hook(verb, *hook);
                 return [hook, &context] { return run_unload(*hook, context); };
             });
}

} // namespace sieve::cli
