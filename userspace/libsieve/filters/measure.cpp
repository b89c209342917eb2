// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/measure.hpp"

#include <algorithm>

#include <sieve/prefix.h>

#include "libsieve/filters/blocked_plan.hpp"
#include "libsieve/filters/kind_builder.hpp"
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
    return rate_of_probes(expected_query_rate(image.lookup(), image.filter(), image.file().keys),
                          std::max<std::uint32_t>(1, image.lookup().probes));
}

double expected_fpr_of(const Image& image, double worst, const sieve_key& shape) {
    const sieve_lookup& lookup = image.lookup();
    if (lookup.probes == 0) return worst;
    const __u64* address = shape.word + sieve_address_word(lookup.fields);
    return rate_of_probes(rate_of_one_probe(worst, lookup.probes),
                          image.probes().count[sieve_family(address[0], address[1])]);
}

double expected_fpr_of_witnesses(const Image& image, double worst) {
    double sum = 0;
    for (const sieve_witness& witness : image.witnesses()) sum += expected_fpr_of(image, worst, witness.key);
    return sum / static_cast<double>(image.witnesses().size());
}

} // namespace sieve
