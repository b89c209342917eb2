// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The d-left Bloom filter with dynamic bit reassignment. The filter has d subtables. Each key goes into the
// least loaded of its d buckets, ties to the left. A bucket divides a fixed number of bits evenly among its
// fingerprints. Source: F. Bonomi, M. Mitzenmacher, R. Panigrahy, S. Singh, G. Varghese, "Bloom Filters via
// d-Left Hashing and Dynamic Bit Reassignment" (Allerton 2006). Loads are those in the limit of many buckets.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sieve::analysis::d_left {

/// Q_ij: element [i][j] is the fraction of the buckets of subtable i (0 is the leftmost) that hold j
/// fingerprints.
using SubtableLoads = std::vector<std::vector<double>>;

/// Solves the differential equations of d-left hashing (section II-A, which refers to Mitzenmacher and
/// Vocking):
///
///     dz_ij/dt = d (z_i,j-1 - z_ij) prod_{l<i} z_lj prod_{l>i} z_l,j-1
///
/// where z_ij is the fraction of buckets of subtable i with load j or more, and t the mean number of keys per
/// bucket. A key enters subtable i at load j-1 if every bucket to its left holds more and every one to its
/// right no fewer. All rows have the same length. Less than 1e-32 of the buckets hold a load beyond the last
/// entry. Entries above 1e-32 keep six digits with the given `accuracy`, the error allowed per step, and
/// three with 1e-5, in a sixth of the time. Preconditions: 1 <= subtables <= 4, and average_load >= 0.
SubtableLoads load_distribution(unsigned subtables, double average_load, double accuracy = 1e-9);

/// Mean over the subtables: the fraction of all buckets with load j. Tables I and II.
std::vector<double> overall_loads(const SubtableLoads& loads);

/// Bits of every fingerprint in a bucket of load a >= 1, f(a), semi-sorted bits included.
using FingerprintLength = std::function<unsigned(unsigned load)>;

/// How a bucket spends its bits. Callable as a FingerprintLength.
struct BucketLayout {
    unsigned fingerprint_bits;              ///< shared evenly among the bucket's fingerprints
    unsigned (*sorted_bits)(unsigned load); ///< leading bits that semi-sorting makes implicit; section II-B

    /// f(a) = floor(fingerprint_bits / a) + sorted_bits(a).
    unsigned operator()(unsigned load) const { return fingerprint_bits / load + sorted_bits(load); }
};

/// 64-bit bucket, 60 bits of fingerprints, no semi-sorting; section II-A.
BucketLayout layout_64();
/// 64-bit bucket, one sorted bit at loads 4 and 5; section II-B.
BucketLayout layout_64_semi_sorted();
/// 128-bit bucket, 120 bits of fingerprints, one sorted bit at every load; section II-B.
BucketLayout layout_128_one_bit();
/// 128-bit bucket, two sorted bits at loads 6 and 7, one at all others; section II-B.
BucketLayout layout_128_two_bits();

/// False positive probability by formula (1): sum_i sum_a Q_ia a 2^{-f(a)}. This is a union bound over the
/// fingerprints that a lookup compares; it is tight where the result is small. `loads` may also be measured
/// loads.
double false_positive(const SubtableLoads& loads, const FingerprintLength& length);

/// false_positive() without the union bound: 1 - prod_i sum_a Q_ia (1 - 2^{-f(a)})^a, for stored fingerprints
/// that are independent and uniform.
double false_positive_independent(const SubtableLoads& loads, const FingerprintLength& length);

/// False positive probability with `group` buckets of one subtable sharing their fingerprint bits; section
/// II-C. All fingerprints of a group whose loads add up to s get floor(group * fingerprint_bits / s) stored
/// bits, and each bucket adds the sorted bits of its own load a:
///     sum_i sum_{a, s} Pr_i(a, s) a 2^{-(floor(group * fingerprint_bits / s) + sorted_bits(a))}
/// with the loads of a group independent. group = 1 is formula (1). Precondition: group >= 1.
double false_positive_grouped(const SubtableLoads& loads, const BucketLayout& layout, unsigned group);

/// Number of ways in which `load` fingerprints can split over the 2^bits values of their sorted bits: C(load
/// + 2^bits - 1, load). The counter must tell this many states apart at this load; section II-B.
/// Precondition: bits <= 3.
std::uint64_t semi_sort_states(unsigned load, unsigned bits);

/// Number of states that the counter of a bucket must tell apart for loads 0..max_load.
std::uint64_t counter_states(const BucketLayout& layout, unsigned max_load);

} // namespace sieve::analysis::d_left
