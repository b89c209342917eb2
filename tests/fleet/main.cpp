// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tests of the fleet with real etcd and nginx.
#include "libsieve/fleet/node/fleet_tasks.hpp"
#include "service/own_network.hpp"

int main(int argc, char** argv) {
    return sieve::test::run_in_own_network(argc, argv, sieve::fleet::fleet_tasks());
}
