// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tests of refreshes with real children, servers and certificates.
#include "service/own_network.hpp"

int main(int argc, char** argv) {
    return sieve::test::run_in_own_network(argc, argv);
}
