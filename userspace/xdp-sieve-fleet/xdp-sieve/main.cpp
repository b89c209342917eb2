// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve with the commands of a fleet (front-end/with_fleet.hpp).
#include "xdp-sieve-fleet/xdp-sieve/fleet_commands.hpp"
#include "xdp-sieve/program.hpp"

int main(int argc, char** argv) {
    return sieve::cli::run_program(argc, argv, sieve::cli::fleet_commands);
}
