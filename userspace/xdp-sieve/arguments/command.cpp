// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/command.hpp"

#include "front-end/console/output.hpp"
#include "front-end/console/remedy.hpp"
#include "xdp-sieve/arguments/confine_lists.hpp"

namespace sieve::cli {

void add_command(CLI::App& app, Context& context, const std::string& name, const std::string& description,
                 const std::function<Action(Arguments command)>& define) {
    Arguments command = Arguments(&app).add_command(name, description);
    command.when_chosen([&context, command, action = define(command)] {
        if (!context.no_sandbox) confine_lists();
        const Result<Exit> result = action();
        if (result) {
            context.exit = *result;
            return;
        }
        context.exit = exit_code(result.error().kind);
        print_error("xdp-sieve: {}\n", error_text(result.error(), command.has("--confirm")));
    });
}

} // namespace sieve::cli
