// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/verb.hpp"

#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

namespace sieve::cli {

void add_verb(CLI::App& app, Context& context, const std::string& name, const std::string& description,
              const std::function<Action(Arguments verb)>& define) {
    CLI::App* verb = app.add_subcommand(name, description);
    verb->fallthrough();
    verb->callback([&context, action = define(Arguments(verb))] {
        const Result<Exit> result = action();
        if (result) {
            context.exit = *result;
            return;
        }
        context.exit = result.error().exit;
        fmt::print(stderr, "xdp-sieve: {}\n", result.error().message);
    });
}

} // namespace sieve::cli
