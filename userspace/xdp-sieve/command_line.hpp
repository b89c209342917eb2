// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The whole command line: its commands and the options of all commands.
#pragma once

#include <span>
#include <string_view>

#include "front-end/console/program.hpp"
#include "xdp-sieve/arguments/context.hpp"

namespace sieve::cli {

struct Command {
    std::string_view name;
    void (*add)(CLI::App& app, Context& context);
};

// Whether this is a command that every xdp-sieve has.
[[nodiscard]] bool is_common_command(std::string_view name);

// The program without arguments.
[[nodiscard]] Program xdp_sieve();

// Adds all arguments to it, and the commands `more`; of the commands, `only` the one of that name if there is
// one, since all of them take a tenth of a command's start. Parsing runs the command, which leaves its exit
// code in `context`.
void define_command_line(Program& program, Context& context, std::string_view only = {},
                         std::span<const Command> more = {});

} // namespace sieve::cli
