// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The commands of the command line. Each command is one file with one function that registers it.
#pragma once

#include <functional>
#include <string>

#include "front-end/console/arguments.hpp"
#include "libsieve/util/results/result.hpp"
#include "xdp-sieve/arguments/context.hpp"

namespace sieve::cli {

// A command's work: returns an exit code, or the error to print.
using Action = std::function<Result<Exit>()>;

// Registers a command. `define` adds the command's arguments and returns its action, which runs if the
// command was chosen. An error is printed to standard error as "xdp-sieve: MESSAGE; ADVICE" and becomes the
// exit code.
void add_command(CLI::App& app, Context& context, const std::string& name, const std::string& description,
                 const std::function<Action(Arguments command)>& define);

void add_build(CLI::App& app, Context& context);
void add_query(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_diff(CLI::App& app, Context& context);
void add_inspect(CLI::App& app, Context& context);
void add_load(CLI::App& app, Context& context);
void add_swap(CLI::App& app, Context& context);
void add_join(CLI::App& app, Context& context);
void add_set(CLI::App& app, Context& context);
void add_add(CLI::App& app, Context& context);
void add_default(CLI::App& app, Context& context);
void add_replies(CLI::App& app, Context& context);
void add_confirm(CLI::App& app, Context& context);
void add_insert(CLI::App& app, Context& context);
void add_delete(CLI::App& app, Context& context);
void add_expire(CLI::App& app, Context& context);
void add_list(CLI::App& app, Context& context);
void add_remove(CLI::App& app, Context& context);
void add_unload(CLI::App& app, Context& context);
void add_pause(CLI::App& app, Context& context);
void add_resume(CLI::App& app, Context& context);
void add_accept(CLI::App& app, Context& context);
void add_ban(CLI::App& app, Context& context);
void add_unban(CLI::App& app, Context& context);
void add_banned(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_stats(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_events(CLI::App& app, Context& context);
void add_top(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_kinds(CLI::App& app, Context& context);
void add_apply(CLI::App& app, Context& context);
void add_config(CLI::App& app, Context& context);

} // namespace sieve::cli
