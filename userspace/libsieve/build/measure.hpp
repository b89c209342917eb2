// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The false positive rate of an image: measured by random keys, and expected from the filter's bits.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "libsieve/image/image.hpp"

namespace sieve {

struct Measurement {
    std::uint64_t trials = 0; // random keys that are non-members
    std::uint64_t hits = 0;   // how many of them matched the filter
    [[nodiscard]] double rate() const {
        return trials == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(trials);
    }
    Measurement operator+(const Measurement& other) const {
        return {trials + other.trials, hits + other.hits};
    }
};

// Asks the image about `trials` random keys of the same shapes as its witnesses. Keys that turn out to be
// members do not count. `is_member` is called only for keys that match the filter, by several threads. The
// seed determines the result.
Measurement measure_fpr(const Image& image, std::uint64_t trials, std::uint64_t seed,
                        const std::function<bool(const sieve_key&)>& is_member);
// The same with keys of the shapes of these members, for an image whose witnesses nobody has checked.
Measurement measure_fpr(const Image& image, std::span<const sieve_witness> shapes, std::uint64_t trials,
                        std::uint64_t seed, const std::function<bool(const sieve_key&)>& is_member);

// Random keys by which the builder counts which share of them a set of several fields covers. A share for
// which it counts none may still be as large as one of these.
inline constexpr std::uint64_t cover_draws = 1U << 17;

// The exact expected rate over random keys, from the number of ones in each line. A key asks as many lines as
// it has choices. In a prefix set, a packet asks once for each probe; the rate is that of the family with
// more probes.
double expected_fpr(const Image& image);

// How far chance may have moved the expected rate: the standard deviation of the rate of such a filter,
// estimated from the differences between its parts. In a filter with many bits a key, a few overfull lines or
// buckets make up the rate, so two filters of the same shape can differ a lot.
double scatter_of_expected_fpr(const Image& image);

// expected_fpr for non-members of this key's shape: in a prefix set the families may make different numbers
// of probes. `worst` is the result of expected_fpr.
double expected_fpr_of(const Image& image, double worst, const sieve_key& shape);

// The mean of expected_fpr_of over the image's witnesses. Random keys have the witnesses' shapes.
double expected_fpr_of_witnesses(const Image& image, double worst);

// Whether so many matches of so many random keys agree with the image's rate, as analysis::fits_rate() says.
// Keys that ask the same question of a probe match together: `* 25` makes a probe that asks 65,536 questions.
// So chance sways their number as it does that of the questions.
[[nodiscard]] bool fits_rate(const Image& image, std::uint64_t hits, std::uint64_t trials, double rate);

} // namespace sieve
