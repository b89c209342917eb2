// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exact false positive rate of a finished XORSAT filter, from its bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sieve/xorsat.h>

namespace sieve {

// The rate over random hashes: a key's own line, eighth and class are uniform, and the q of the line that
// keeps the eighth says how many bits of the fingerprint, which are independent of all these, are compared.
double expected_xorsat_rate(const sieve_lookup& lookup, std::span<const sieve_line> lines);

// The same for each of `parts` parts: over the hashes whose own line is part, part + parts, and so on.
// Neighbours would not do: runs of lines differ mostly by how many keys they happen to get, which whole
// filters do not, and exports even lines out among their neighbours.
std::vector<double> expected_xorsat_rates(const sieve_lookup& lookup, std::span<const sieve_line> lines,
                                          std::uint32_t parts);

// The share of the hashes that are looked up in a second line.
double xorsat_exported(std::span<const sieve_line> lines);

} // namespace sieve
