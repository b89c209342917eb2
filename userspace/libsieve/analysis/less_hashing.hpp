// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Limits and bounds for schemes that derive all k probes from two hashes. Source: A. Kirsch, M. Mitzenmacher,
// "Less Hashing, Same Performance: Building a Better Bloom Filter" (RSA 33, 2008). The partition, double,
// enhanced double and triple hashing schemes have the same limit as the standard filter.
#pragma once

namespace sieve::analysis::less_hashing {

/// lim Pr(F) = (1 - e^{-k/c})^k as n -> infinity with m = cn bits; Theorems 5.1 and 5.2.
/// Preconditions: bits_per_key = c > 0, k >= 1.
double false_positive_limit(double bits_per_key, unsigned k);

/// The k among floor(c ln 2) and ceil(c ln 2), at least 1, that minimises false_positive_limit; section 8.
unsigned best_k(double bits_per_key);

/// The number of false positives among Q queries tends in distribution to the normal law N(Qp, Qp(1-p)),
/// where p is the limit; Theorem 7.2 (4) and Figure 2. Returns its density at x. The density times the number
/// of trials is the expected histogram. Preconditions: queries > 0, 0 < p < 1.
double false_positives_density(double x, double queries, double p);

/// Count-Min sketch on two hash functions: d rows of w counters, w prime, N the total count. Bound on
/// Pr(estimate > truth + epsilon N): 2/(epsilon w^2) + (2/(epsilon w))^d, capped at 1; Theorem 9.1.
/// Preconditions: width >= 2, depth >= 1, epsilon > 0.
double count_min_overestimate_bound(double width, unsigned depth, double epsilon);

/// The shape of a sketch.
struct CountMinShape {
    unsigned long width; ///< w, a prime
    unsigned depth;      ///< d
};

/// The smallest shape for which Theorem 9.1 promises Pr(estimate > truth + epsilon N) <= epsilon:
/// the least prime w >= 2e/epsilon, and d >= ln(1 / (epsilon (1 - 1/(2e^2)))).
/// Precondition: 1e-6 <= epsilon < 1.
CountMinShape count_min_shape(double epsilon);

} // namespace sieve::analysis::less_hashing
