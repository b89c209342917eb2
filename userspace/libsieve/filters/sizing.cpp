// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/sizing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sieve {

std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) {
    return std::max<std::uint64_t>(
        1, std::llround(std::ceil(static_cast<double>(keys) * bits_per_key / SIEVE_LINE_BITS)));
}

double bits_per_key_of(std::uint64_t keys, std::uint64_t lines) {
    return static_cast<double>(lines) * SIEVE_LINE_BITS / static_cast<double>(keys);
}

std::optional<std::uint64_t> fewest_lines(double fpr, const LinesSearch& search,
                                          const std::function<double(std::uint64_t)>& rate) {
    struct Point {
        std::uint64_t lines;
        double rate; // its logarithm
    };
    const auto at = [&](std::uint64_t lines) {
        return Point{lines, std::log2(std::clamp(rate(lines), std::numeric_limits<double>::min(), 1.0))};
    };
    if (!(fpr > 0)) return std::nullopt;
    const double wanted = std::log2(fpr);
    const auto share_of = [&](std::uint64_t lines) {
        return std::max<std::uint64_t>(
            1, static_cast<std::uint64_t>(search.precision * static_cast<double>(lines)));
    };
    const auto scaled = [](std::uint64_t lines, double factor) {
        return static_cast<std::uint64_t>(static_cast<double>(lines) * factor);
    };

    // Grows in proportion to what the rate still has to fall, but by no more than half.
    Point few{0, 0};
    Point enough = at(std::min(search.least, search.most));
    while (enough.rate > wanted) {
        if (enough.lines >= search.most) return std::nullopt;
        few = enough;
        const double growth = few.rate < 0 ? std::clamp(wanted / few.rate, 1.0, 1.5) : 1.25;
        enough = at(std::min(search.most, scaled(few.lines, growth) + share_of(few.lines)));
    }
    // Tries a little beside the size at which the line between the two points has the wanted rate, so that it
    // becomes the other end. Where that gains too little, it halves.
    bool from_below = enough.lines > 1;
    std::uint64_t before = 0;
    while (enough.lines - few.lines > share_of(enough.lines)) {
        const std::uint64_t width = enough.lines - few.lines;
        std::uint64_t middle = few.lines + width / 2;
        if (before == 0 || width <= before / 2) {
            const double share = (few.rate - wanted) / (few.rate - enough.rate);
            const std::uint64_t guess = few.lines + scaled(width, std::clamp(share, 0.0, 1.0));
            const std::uint64_t beside = share_of(enough.lines) / 2;
            middle = std::clamp(from_below ? guess - std::min(guess, beside) : guess + beside, few.lines + 1,
                                enough.lines - 1);
        }
        before = width;
        const Point found = at(middle);
        from_below = found.rate <= wanted;
        (from_below ? enough : few) = found;
    }
    return enough.lines;
}

std::uint32_t witness_count(std::uint64_t keys) {
    return static_cast<std::uint32_t>(std::min(keys, std::clamp<std::uint64_t>(keys / 1024, 64, 1024)));
}

double rate_of_probes(double rate, std::uint32_t probes) {
    return -std::expm1(probes * std::log1p(-rate));
}

double rate_of_one_probe(double rate, std::uint32_t probes) {
    return -std::expm1(std::log1p(-rate) / probes);
}

} // namespace sieve
