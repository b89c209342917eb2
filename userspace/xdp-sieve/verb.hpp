// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What all verbs of the command line share: each verb is one file with one function that registers it.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::cli {

struct Context {
    bool json = false;
    bool quiet = false;
    bool verbose = false;
    Exit exit = Exit::done;
};

// A verb's work: the exit code of an answer, or the error to print.
using Action = std::function<Result<Exit>()>;

// Registers a subcommand; `action` runs when it was chosen. Errors go to standard error as "xdp-sieve: ..."
// and become the exit code. Returns the subcommand, for its options.
CLI::App& add_verb(CLI::App& app, Context& context, const std::string& name, const std::string& description,
                   const std::function<Action(CLI::App& verb)>& define);

// Prints a remark to standard error unless --quiet.
void remark(const Context& context, const std::string& text);

// A progress bar on standard error if that is a terminal, quiet is off and the work lasts over a second.
Progress progress_bar(const Context& context);

void add_build(CLI::App& app, Context& context);
void add_query(CLI::App& app, Context& context);
void add_inspect(CLI::App& app, Context& context);
void add_load(CLI::App& app, Context& context);
void add_swap(CLI::App& app, Context& context);
void add_insert(CLI::App& app, Context& context);
void add_delete(CLI::App& app, Context& context);
void add_remove(CLI::App& app, Context& context);
void add_unload(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_stats(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_events(CLI::App& app, Context& context);
void add_top(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);

} // namespace sieve::cli
