// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Programs come twice: without a fleet, and, in the package xdp-sieve-fleet, with one. Only the latter link
// libcrypto and libzstd and know etcd.
//
//     PREFIX/bin/xdp-sieve      PREFIX/lib/xdp-sieve/fleet/xdp-sieve
//     PREFIX/sbin/xdp-sieved    PREFIX/lib/xdp-sieve/fleet/xdp-sieved
#pragma once

namespace sieve::cli {

inline constexpr const char* fleet_package = "xdp-sieve-fleet";

// Becomes the program of the same name that has a fleet, with the same arguments. Returns if it is not
// installed.
void become_program_with_fleet(char** argv);

} // namespace sieve::cli
