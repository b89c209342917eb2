// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The unblocked filter with c groups of k hash functions, filled online: each key takes the group that needs
// the fewest new ones. Source: S. Lumetta, M. Mitzenmacher, "Using the Power of Two Choices to Improve Bloom
// Filters" (Internet Mathematics 4, 2007). All results are for the limit n -> infinity at fixed m/n. Offline
// rebalancing (section 3.2) has no known analysis.
#pragma once

namespace sieve::analysis::two_choice {

/// E[min(B_1, ..., B_c)], where the B_i are independent binomials of k trials with success probability
/// `zeros`. This is the expected number of new ones that a greedily placed key sets in a filter whose
/// fraction of zeros is `zeros`: the right-hand side of (3.2), times m/n. Preconditions: 0 <= zeros <= 1, k
/// >= 1, groups >= 1.
double expected_new_ones(double zeros, unsigned k, unsigned groups);

/// Fraction of ones z(1) after all n keys, by differential equation (3.2): dz/dt' = expected_new_ones(1 - z)
/// / (m/n). One group gives 1 - e^{-kn/m}. Preconditions: bits_per_key = m/n > 0, k >= 1, groups >= 1.
double fraction_of_ones(double bits_per_key, unsigned k, unsigned groups);

/// False positive probability of a filter with a fraction `ones` = p of ones: 1 - (1 - p^k)^c; section 3.
double fpp_given_ones(double ones, unsigned k, unsigned groups);

/// False positive probability after online filling: fpp_given_ones at fraction_of_ones.
double fpp(double bits_per_key, unsigned k, unsigned groups);

/// A choice of k and the false positive probability that it gives.
struct BestGroupK {
    unsigned k;
    double fpp;
};

/// The k that minimises fpp().
BestGroupK best_k(double bits_per_key, unsigned groups);

} // namespace sieve::analysis::two_choice
