// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/measure.hpp"

#include "libsieve/analysis/blocked.hpp"
#include "libsieve/filters/blocked_plan.hpp"
#include "libsieve/filters/pattern_rate.hpp"
#include "libsieve/filters/random_keys.hpp"

namespace sieve {

Measurement measure_fpr(const Image& image, std::uint64_t trials, std::uint64_t seed,
                        const std::function<bool(const sieve_key&)>& is_member) {
    RandomKeys keys(image.witnesses(), image.lookup().fields, seed);
    Measurement measurement;
    for (std::uint64_t i = 0; i < trials; i++) {
        const sieve_key key = keys();
        if (image.contains(key)) {
            if (is_member(key)) continue;
            measurement.hits++;
        }
        measurement.trials++;
    }
    return measurement;
}

double expected_fpr(const Image& image) {
    const PatternRate rate(image.lookup().hashes);
    double sum = 0;
    for (const sieve_line& line : image.filter()) sum += rate(word_fill(line));
    return analysis::blocked::query_fpr(sum / static_cast<double>(image.filter().size()),
                                        alpha_from_image(image.lookup().alpha), image.lookup().choices);
}

} // namespace sieve
