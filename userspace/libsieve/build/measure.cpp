// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/measure.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include <sieve/prefix.h>

#include "libsieve/analysis/binomial.hpp"
#include "libsieve/build/random_keys.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/sizing.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {

namespace {

// How many keys one thread draws and asks as one portion. Each portion has its own random numbers, so the
// result does not depend on the number of threads.
constexpr std::uint64_t portion_keys = 1U << 15;

// The random bits of a question that consists of so many bits of addresses, and of these fields (enum
// sieve_field) of the transport. Protocols are not drawn at random (random_keys.hpp).
int random_bits(int address_bits, std::uint32_t transport) {
    constexpr int port_bits = 16;
    return address_bits + std::popcount(transport & std::uint32_t{SIEVE_FIELD_PORTS}) * port_bits;
}

// The random bits of the probe that leaves out most of a key, or of the whole key.
int least_random_bits(const Image& image) {
    constexpr int v4_bits = 32;
    constexpr int before_v4 = 96; // bits in front of an IPv4 address
    const sieve_lookup& lookup = image.lookup();
    if (lookup.probes == 0)
        return random_bits(std::popcount(lookup.fields & std::uint32_t{SIEVE_FIELD_ADDRESSES}) * v4_bits,
                           lookup.fields);
    const sieve_probes& probes = image.probes();
    int least = 64;
    for (const int family : {SIEVE_FAMILY_V4, SIEVE_FAMILY_V6})
        for (int i = 0; i < probes.count[family]; i++) {
            const int before = family == SIEVE_FAMILY_V4 ? before_v4 : 0;
            int bits = std::max(0, probes.length[family][i] - before);
            if (!sieve_is_one_address(lookup.fields))
                bits = random_bits(bits + std::max(0, probes.destination[family][i] - before),
                                   probes.transport[family][i]);
            least = std::min(least, bits);
        }
    return least;
}

// The matches of `keys` random keys that ask the filter vary as those of this many times fewer keys would
// that all ask different questions: with q possible questions, the variance is 1 + keys / q times the
// binomial one.
double keys_per_question(const Image& image, std::uint64_t keys) {
    if (image.kind().exact() != nullptr) return 1;
    return 1 + std::ldexp(static_cast<double>(keys), -least_random_bits(image));
}

} // namespace

Measurement measure_fpr(const Image& image, std::uint64_t trials, std::uint64_t seed,
                        const std::function<bool(const sieve_key&)>& is_member) {
    return measure_fpr(image, image.witnesses(), trials, seed, is_member);
}

Measurement measure_fpr(const Image& image, std::span<const sieve_witness> shapes, std::uint64_t trials,
                        std::uint64_t seed, const std::function<bool(const sieve_key&)>& is_member) {
    const auto ask = [&](std::uint64_t portion) {
        RandomKeys keys(shapes, image.lookup().fields, sieve_mix(seed + portion));
        Measurement measurement;
        const std::uint64_t count = std::min(portion_keys, trials - portion * portion_keys);
        for (std::uint64_t i = 0; i < count; i++) {
            const sieve_key key = keys();
            if (image.contains(key)) {
                if (is_member(key)) continue;
                measurement.hits++;
            }
            measurement.trials++;
        }
        return measurement;
    };
    std::vector<Measurement> measured((trials + portion_keys - 1) / portion_keys);
    for_each_index(measured.size(), [&](std::size_t portion) { measured[portion] = ask(portion); });
    return std::accumulate(measured.begin(), measured.end(), Measurement{});
}

double expected_fpr(const Image& image) {
    const sieve_lookup& lookup = image.lookup();
    return rate_of_probes(image.kind().expected_rate(lookup, image.filter(), image.file().keys),
                          std::max<std::uint32_t>(1, lookup.probes));
}

double scatter_of_expected_fpr(const Image& image) {
    constexpr std::uint32_t parts = 16;
    const sieve_lookup& lookup = image.lookup();
    if (lookup.buckets < parts) return 1;
    double sum = 0;
    double squares = 0;
    for (const double rate : image.kind().expected_rates(lookup, image.filter(), image.file().keys, parts)) {
        sum += rate;
        squares += rate * rate;
    }
    const double mean = sum / parts;
    const double deviation = std::sqrt(std::max(0.0, squares / parts - mean * mean) / (parts - 1));
    return deviation * std::max<std::uint32_t>(1, lookup.probes);
}

double expected_fpr_of(const Image& image, double worst, const sieve_key& shape) {
    const sieve_lookup& lookup = image.lookup();
    if (lookup.probes == 0 || image.kind().exact() != nullptr) return worst;
    return rate_of_probes(rate_of_one_probe(worst, lookup.probes),
                          image.probes().count[sieve_key_family(&shape, lookup.fields)]);
}

double expected_fpr_of_witnesses(const Image& image, double worst) {
    double sum = 0;
    for (const sieve_witness& witness : image.witnesses()) sum += expected_fpr_of(image, worst, witness.key);
    return sum / static_cast<double>(image.witnesses().size());
}

bool fits_rate(const Image& image, std::uint64_t hits, std::uint64_t trials, double rate) {
    const double together = keys_per_question(image, trials);
    const auto apart = [&](std::uint64_t count) {
        return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) / together));
    };
    return analysis::fits_rate(apart(hits), apart(trials), rate);
}

} // namespace sieve
