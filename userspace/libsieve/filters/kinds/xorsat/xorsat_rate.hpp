// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exact false positive rate of a finished XORSAT filter, from its bits.
#pragma once

#include <cstdint>
#include <span>

#include <sieve/xorsat.h>

namespace sieve {

// The rate over random hashes: a key's own line, eighth and class are uniform, and the q of the line that
// keeps the eighth says how many bits of the fingerprint, which are independent of all these, are compared.
double expected_xorsat_rate(const sieve_lookup& lookup, std::span<const sieve_line> lines);

// The share of the hashes that are looked up in a second line.
double xorsat_exported(std::span<const sieve_line> lines);

} // namespace sieve
