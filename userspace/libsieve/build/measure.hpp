// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The false positive rate of an image by asking it.
#pragma once

#include <cstdint>
#include <functional>

#include "libsieve/image/image.hpp"

namespace sieve {

struct Measurement {
    std::uint64_t trials = 0; // random keys that are no members
    std::uint64_t hits = 0;   // of these, how many the filter took for members
    [[nodiscard]] double rate() const {
        return trials == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(trials);
    }
    Measurement operator+(const Measurement& other) const {
        return {trials + other.trials, hits + other.hits};
    }
};

// Asks the image for `trials` random keys that look like its witnesses; drawn members do not count.
// `is_member` is asked only about keys that the filter holds for members, by several threads. Deterministic
// in the seed.
Measurement measure_fpr(const Image& image, std::uint64_t trials, std::uint64_t seed,
                        const std::function<bool(const sieve_key&)>& is_member);

// The exact expectation over random keys, from the number of ones in each line: the mean rate of a line,
// asked as often as a key has lines and, in a prefix set, as often as a packet makes probes: of the family
// that makes more of them.
double expected_fpr(const Image& image);

// How far chance may have moved that: the standard deviation of the rate of such a filter, from how its parts
// differ. In filters of many bits a key a few overfull lines or buckets make up the rate, and one filter is
// not like another.
double scatter_of_expected_fpr(const Image& image);

// expected_fpr for non-members of this key's shape: in a prefix set the families may make different numbers
// of probes. `worst` is what expected_fpr said.
double expected_fpr_of(const Image& image, double worst, const sieve_key& shape);

// The mean of that over the image's witnesses, whose shapes random keys have.
double expected_fpr_of_witnesses(const Image& image, double worst);

} // namespace sieve
