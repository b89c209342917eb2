// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The commands that only a host with a fleet has.
#pragma once

#include "xdp-sieve/command_line.hpp"

namespace sieve::cli {

void add_publish(CLI::App& app, Context& context);
void add_fleet(CLI::App& app, Context& context);

inline constexpr Command fleet_commands[] = {{"publish", add_publish}, {"fleet", add_fleet}};

} // namespace sieve::cli
