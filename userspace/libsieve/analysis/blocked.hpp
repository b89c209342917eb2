// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Blocked Bloom filters: every key lives in one block of B bits; a fraction alpha of the keys chooses the
// least loaded of d blocks. E. Krimer, M. Erez, "The Power of 1+alpha for Memory-Efficient Bloom Filters"
// (Internet Mathematics 7, 2010); equation numbers below are that paper's, where d is always 2. The load
// distribution is the limit of many blocks; at b blocks its entries deviate by O(1/sqrt(b)).
//
// The false positive rate of a block of j keys is a table over j. A different way to set bits within a block
// only needs a different table: standard_bloom::fpp_table (k probes, with replacement) or
// classic_bloom::fpp_table (k distinct bits).
#pragma once

#include <span>
#include <vector>

namespace sieve::analysis::blocked {

/// A blocked filter in the paper's symbols (its Table 1).
/// Preconditions: bits_per_key > 0, block_bits >= 2, k >= 1, 0 <= alpha <= 1, choices >= 1.
struct Filter {
    double bits_per_key;  ///< c = m/n
    unsigned block_bits;  ///< B
    unsigned k;           ///< bits set per key
    double alpha = 0.0;   ///< fraction of keys that have a choice of blocks
    unsigned choices = 2; ///< d: such a key takes the least loaded of d blocks; 2 in the paper

    /// Mean number of keys per block, n/b = B/c.
    double mean_load() const { return block_bits / bits_per_key; }
};

/// The false positive rate inside one block.
enum class BlockRate {
    approximate, ///< FPR_basic by (2.1), (1 - (1 - 1/B)^{kj})^k, as in the paper; too low in small blocks
    exact,       ///< Grandi's exact rate (9) for m = B
};

/// The false positive rate of a query, from the rate q of one block.
enum class QueryRate {
    coefficient, ///< (3.4), (1 + alpha (d-1)) q, as in the paper; a union bound, above 1 for very bad filters
    exact,       ///< (1 - alpha) q + alpha (1 - (1-q)^d)
};

/// How to evaluate the model. The default is the exact one.
struct Model {
    BlockRate block = BlockRate::exact;
    QueryRate query = QueryRate::exact;
};

/// The model with which the paper draws its figures.
inline constexpr Model paper_model{BlockRate::approximate, QueryRate::coefficient};

/// Load distribution D_alpha(j): the fraction of blocks that hold j keys, j = 0..J, after `mean_load` keys
/// per block.
///
/// Solves (3.5), d/dt D(x) = r(x-1) - r(x) with r(x) = alpha (T(x)^d - T(x+1)^d) + (1 - alpha) D(x), where
/// T(x) = sum_{j >= x} D(j) and t is the mean load; (3.2) is the case d = 2. alpha = 0, or one choice, is the
/// Poisson distribution (2.3). J is chosen so that less than 1e-25 of any such distribution lies above it;
/// the last entry includes this rest. Error of an entry p: below 1e-6 p + 1e-17, and below 1e-12 in all.
/// Takes milliseconds. Preconditions: mean_load >= 0, 0 <= alpha <= 1, choices >= 1.
std::vector<double> load_distribution(double mean_load, double alpha, unsigned choices = 2);

/// FPR_basic(B, j, k) by (2.1) for j = 0..max_load: (1 - (1 - 1/B)^{kj})^k.
std::vector<double> basic_fpr_table(unsigned block_bits, unsigned k, unsigned max_load);

/// sum_j D(j) FPR(j), the rate at which a random block answers falsely; (2.2). `loads` is a load distribution
/// or a measured histogram divided by the number of blocks. Precondition: `fpr_by_load` is at least as long.
double block_fpr(std::span<const double> loads, std::span<const double> fpr_by_load);

/// False positive rate of a query from the rate q of a random block. A fraction alpha of all non-members asks
/// `choices` blocks, as for keys.
double query_fpr(double q, double alpha, unsigned choices, QueryRate rate = QueryRate::exact);

/// FPR of the whole filter: (2.2) for alpha = 0, (3.1) for alpha = 1, (3.4) between.
double fpr(const Filter& filter, Model model = {});

/// A choice of alpha and the false positive rate that it gives.
struct BestAlpha {
    double alpha;
    double fpr;
};

/// The alpha in [0, 1] that minimises fpr() with the filter's other parameters as given (its own alpha is
/// ignored); Figure 4. Found to within 0.002, where the rate differs from its minimum by less than 1e-5 of
/// itself; an optimum at 0 or 1 is returned as exactly 0 or 1. Relies on the rate being convex in alpha
/// (section 4, Figure 3).
BestAlpha best_alpha(const Filter& filter, Model model = {});

/// A choice of k and the false positive rate that it gives.
struct BestK {
    unsigned k;
    double fpr;
};

/// The k that minimises fpr() with the filter's other parameters as given (its own k is ignored).
BestK best_k(const Filter& filter, Model model = {});

} // namespace sieve::analysis::blocked
