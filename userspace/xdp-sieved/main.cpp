// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieved: keeps a configuration in force.
#include <string_view>

#include "front-end/with_fleet.hpp"
#include "libsieve/service/sandbox/child.hpp"
#include "xdp-sieved/daemon_program.hpp"

int main(int argc, char** argv) {
    using namespace sieve;
    // A reload may name a fleet, so the program that can follow one runs from the start.
    if (argc < 2 || std::string_view(argv[1]) != service::child_argument)
        cli::become_program_with_fleet(argv);
    return cli::run_daemon_program(argc, argv, {});
}
